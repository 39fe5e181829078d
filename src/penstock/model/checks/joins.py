"""What a join's distribution may say: known words, sizes that can be, and no option without effect."""

from __future__ import annotations

from penstock.model.boxes import Join
from penstock.model.error_location import node_error
from penstock.model.errors import did_you_mean
from penstock.model.join_distribution import DISTRIBUTIONS, MASTERS, PLACEMENTS, WHEN_FULL, Diffusion


def check_distribution(node: Join) -> None:
    """Refuse what no engine could run."""
    _word(node, "distribution", node.distribution, DISTRIBUTIONS)
    _word(node, "master", node.diffusion.master, MASTERS)
    _word(node, "placement", node.diffusion.placement, PLACEMENTS)
    _word(node, "when_full", node.diffusion.when_full, WHEN_FULL)
    _sizes(node)
    # An option without effect is most likely a mistake: the user believes that the join is diffused.
    if node.distribution == "hash" and node.diffusion != Diffusion():
        raise node_error(
            node,
            "options of a diffused join on a join by hash",
            found=", ".join(_given(node)),
            expected="distribution 'diffused' or 'auto'",
            hint='add distribution="diffused", or leave the options out',
        )
    if node.diffusion.when_full != "error" and node.diffusion.memory is None:
        raise node_error(
            node,
            f"when_full '{node.diffusion.when_full}' without a memory that can be full",
            expected="memory: the tuples that a server may keep",
            hint="memory=100_000",
        )


def _word(node: Join, part: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise node_error(
            node,
            f"{part}: unknown choice",
            found=f"'{word}'",
            expected=f"one of: {', '.join(known)}",
            hint=did_you_mean(word, known),
        )


def _sizes(node: Join) -> None:
    options = node.diffusion
    if node.servers is not None and node.servers < 1:
        raise node_error(
            node,
            "servers: too few",
            found=str(node.servers),
            expected="1 or more",
            hint="leave it out for one in each partition",
        )
    if options.memory is not None and options.memory < 1:
        raise node_error(node, "memory: too small", found=f"{options.memory} tuples", expected="1 or more")
    if options.threshold is not None and not 0 < options.threshold <= 1:
        raise node_error(
            node,
            "threshold: not a share",
            found=f"{options.threshold:g}",
            expected="above 0, at most 1",
            hint="0.7: the hottest server has 70 % of the load",
        )
    if options.sample <= 0:
        raise node_error(
            node, "sample: not a length of time", found=f"{options.sample} microseconds", expected="above 0"
        )


def _given(node: Join) -> list[str]:
    """The options that say something."""
    # What equals its default may have been given too. It has no effect either way.
    plain = Diffusion()
    return [n for n in vars(plain) if getattr(node.diffusion, n) != getattr(plain, n)]
