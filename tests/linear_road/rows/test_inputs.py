"""What `--input` takes, and files that are whole or absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.linear_road.errors import InputError
from penstock.linear_road.rows.inputs import history_beside, open_input
from penstock.store.durable import whole_file


def test_a_directory_gives_its_files_in_the_order_of_the_manifest(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv"):
        (tmp_path / name).write_text("")
    (tmp_path / "manifest.json").write_text(json.dumps({"files": ["b.csv", "a.csv"], "seed": 1}))
    found = open_input(tmp_path)
    assert [file.name for file in found.files] == ["b.csv", "a.csv"]
    assert found.format == "csv"
    assert found.manifest is not None
    assert found.manifest["seed"] == 1


def test_a_flat_file_has_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_text("")
    found = open_input(tmp_path / "a.dat")
    assert (found.files, found.format, found.manifest) == ((tmp_path / "a.dat",), "csv", None)


def test_a_directory_with_one_file_of_rows_is_that_file(tmp_path: Path) -> None:
    for name in ("rows.dat", "expected.csv", "TollHistory.csv", "readme.txt"):
        (tmp_path / name).write_text("")
    found = open_input(tmp_path)
    assert (found.path, found.files, found.manifest) == (tmp_path, (tmp_path / "rows.dat",), None)
    assert history_beside(tmp_path) == tmp_path
    (tmp_path / "rows.dat").unlink()
    assert open_input(tmp_path).files == (tmp_path / "expected.csv",)
    (tmp_path / "TollHistory.csv").unlink()
    assert history_beside(tmp_path) is None
    (tmp_path / "more.csv").write_text("")
    with pytest.raises(InputError, match=r"the only one, or named rows\.dat"):
        open_input(tmp_path)


def test_what_a_generator_has_not_finished_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "rows-0-59.csv").write_text("")
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        open_input(tmp_path)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (None, r"has no manifest\.json"),
        ("{", "cannot be read"),
        ("[]", "no list `files`"),
        ('{"files": [1]}', "no list `files`"),
        ('{"files": ["x.csv"]}', "no such file"),
        ('{"files": ["../x.csv"]}', "outside the directory"),
        ('{"files": ["a.csv", "b.parquet"]}', "mixes"),
    ],
)
def test_bad_manifests(tmp_path: Path, manifest: str | None, message: str) -> None:
    for name in ("a.csv", "b.parquet"):
        (tmp_path / name).write_text("")
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(InputError, match=message):
        open_input(tmp_path)


def test_bad_paths(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_input(tmp_path / "nowhere")
    (tmp_path / "a.parquet").write_text("0,1")
    with pytest.raises(InputError, match="content is not parquet"):
        open_input(tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="content is parquet"):
        open_input(tmp_path / "a.csv")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    final = tmp_path / "a.csv"
    final.write_text("old")

    def fail() -> None:
        with whole_file(final) as path:
            path.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fail()
    assert final.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]
