"""The bodies of writes. Each carries the version of the network that the client knows."""

from __future__ import annotations

from pydantic import BaseModel, Field

from penstock.model.json_types import JsonObject

_LONGEST = 500_000  # characters of a network


class Write(BaseModel):
    """Any write."""

    version: int = Field(description="The version that GET /api/network gave.", examples=[3])


class HoldBody(Write):
    """Hold a sub-network."""

    subnetwork: str
    seconds: float = Field(60.0, description="It is released then, unless asked for again.")


class StepBody(Write):
    """Step a held sub-network."""

    subnetwork: str
    tuples: int | None = Field(None, ge=1, description="At most so many of each input; null: a whole train.")


class ReleaseBody(Write):
    """Let a sub-network go on."""

    subnetwork: str


class BreakpointBody(Write):
    """Hold when a tuple fulfils a condition."""

    arrow: str = Field(description="tail:head:index")
    condition: str = Field(max_length=2_000, description="Spark SQL over the columns.")


class QueryBody(BaseModel):
    """A query to check."""

    point: str
    query: str = Field(max_length=20_000, examples=["SELECT vid, spd FROM recent WHERE spd < 40"])


class AttachBody(Write, QueryBody):
    """A query to attach."""

    name: str = Field("", max_length=100)
    keep: str = Field("", max_length=100, description="Make it a view that keeps its tuples so long.")


class DetachBody(Write):
    """A query to end."""

    name: str


class EditBody(Write):
    """An edit: the whole text, or steps on the picture."""

    yaml: str | None = Field(None, max_length=_LONGEST)
    steps: list[JsonObject] | None = Field(None, max_length=200)
    fresh_state: bool = Field(False, description="Changed stateful boxes start anew.")


class UndoBody(Write):
    """Go back."""

    fresh_state: bool = False


class JudgeBody(BaseModel):
    """A QoS to try."""

    qos: JsonObject
    seconds: int = Field(600, ge=1, le=7_200)


class QosBody(Write):
    """A QoS to set."""

    qos: JsonObject


class BookmarkBody(BaseModel):
    """A place in the picture."""

    view: object = None


class LoginBody(BaseModel):
    """The secret of a token."""

    token: str = Field(max_length=1_000)
