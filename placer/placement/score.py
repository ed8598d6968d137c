"""What a placement costs: a mapping whose keys, said once here, are attributes too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict

from placer.base.units import format_seconds
from placer.documents.facts import ANY, INTERVAL, NUMBER, TEXT, Facts, facts, whole
from placer.documents.keys import Key, Kind, keys_of, list_of, map_of

SECONDS_OF = map_of(NUMBER)


class HotLink(TypedDict):
    """One of the busiest links."""

    tier: Annotated[str, Key(TEXT, "into which the link goes")]
    domain: Annotated[str, Key(TEXT, "whose link it is")]
    direction: Annotated[
        str, Key(TEXT, "`up`, `down`, or `to r2` on a link of its own")
    ]
    bytes: Annotated[float, Key(NUMBER, "that a step sends over it")]
    busy_s: Annotated[float, Key(NUMBER, "that it works in a step")]


class Hop(TypedDict):
    """A hop of a pipeline that leaves a scale-up domain.

    Attributes
    ----------
    from_stage, to_stage : int
    tier : str
        The innermost whose domain holds both.
    """

    from_stage: int
    to_stage: int
    tier: str


class Operation(TypedDict):
    """A part of the chain of operations that sets the step time.

    Attributes
    ----------
    replica : int
        Whose pipeline it is; left out where all wait.
    crossing_hops : list of Hop
        Of pipeline messages; left out elsewhere.
    """

    operation: Annotated[str, Key(TEXT, "in words")]
    seconds: Annotated[float, Key(NUMBER, "that it takes")]
    replica: NotRequired[int]
    crossing_hops: NotRequired[list[Hop]]


class WorstGroup(TypedDict):
    """The slowest group of the axis that adds most to the step."""

    axis: Annotated[str, Key(TEXT, "that adds most to the step")]
    group: Annotated[int, Key(NUMBER, "its slowest group, counted from 0")]
    groups: Annotated[int, Key(NUMBER, "groups of the axis")]
    as_slow: Annotated[int, Key(NUMBER, "groups that take as long")]
    rank: Annotated[int, Key(whole(), "its first rank", None)]
    ranks: Annotated[int, Key(whole(), "how many it has", None)]
    exposed_s: Annotated[float, Key(NUMBER, "that its axis adds to the step", None)]
    seconds: Annotated[float, Key(NUMBER, "of one `operation`", None)]
    operation: Annotated[str, Key(TEXT, "what the group does", None)]
    common_tier: Annotated[str, Key(TEXT, "the lowest whose domain holds it", None)]
    domains: Annotated[int, Key(whole(), "scale-up domains that it is in", None)]


class SlowHost(TypedDict):
    """The host that sets the pace of the work."""

    host: Annotated[str, Key(TEXT, "that sets the pace of the work")]
    compute_factor: Annotated[float, Key(NUMBER, "share of the usual speed")]
    replica: Annotated[int, Key(whole(), "that waits for it")]
    stage: Annotated[int, Key(whole(), "of that replica")]


class MemoryBytes(TypedDict):
    """Memory of a GPU of the fullest pipeline stage, bytes.

    Attributes
    ----------
    parameters, gradients, optimizer, activations : float, bytes
    other : float, bytes
        Outside the framework's allocator.
    total : float, bytes
    stage : int
        The fullest.
    by_stage : list of float, bytes
        The total of every stage.
    role : str
        Of a workload, the role that needs most.
    """

    parameters: float
    gradients: float
    optimizer: float
    activations: float
    other: float
    total: float
    stage: int
    by_stage: list[float]
    role: NotRequired[str]


class _Role(Facts):
    seconds = Key(NUMBER, "of the role between two transfers")
    exposed_s = Key(SECONDS_OF, "as of the score", None)


class _Entry(Key):
    """A key of a score that is an attribute too, None where the job has none."""

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        object.__setattr__(self, "attribute", name)

    def __get__(self, score: Score | None, _owner: type) -> Any:
        return self if score is None else score.get(self.called)


def _given(kind: Kind, says: str) -> Any:
    return _Entry(kind, says, None)


class Costs(Facts):
    """What is known of every placement that is priced, a baseline's too."""

    step_time_s: float = _given(NUMBER, "one step")
    exposed_scale_out_s: float = _given(
        NUMBER, "step time less that of the same placement with free scale-out links"
    )
    hop_cost: float | None = _given(NUMBER, "the hop cost, when the job has weights")
    exposed_s: Mapping[str, float] = _given(
        SECONDS_OF, "axis or group: time that compute does not hide"
    )


class Score(Costs, dict[str, Any]):
    """What a placement costs, as plain data for plans and JSON.

    It is a dict whose keys are attributes too, so that editors and type checkers know
    them: ``score.step_time_s`` is ``score["step_time_s"]``. Keys that a job does not
    have are missing from the dict, and None as attributes.
    """

    step_time_interval_s: Sequence[float] | None = _given(
        INTERVAL, "lowest and highest that `compute.step_error` allows"
    )
    memory_bytes: MemoryBytes | None = _given(
        ANY,
        "what a GPU of the fullest stage holds: `parameters`, `gradients`, "
        "`optimizer`, `activations`, `other`, `total`, that `stage`, and all "
        "`by_stage`; of a workload by `roles`",
    )
    memory_limit_bytes: float | None = _given(NUMBER, "what a GPU has")
    slowest_host: SlowHost | None = _given(
        facts(SlowHost), "the host that others wait for"
    )
    compute_s: float = _given(NUMBER, "the work")
    bubble_s: float = _given(NUMBER, "the pipeline's idle time")
    fixed_s: float = _given(NUMBER, "what a step pays once")
    exposed_scale_out_share: float = _given(
        NUMBER, "the share of the step that `exposed_scale_out_s` is"
    )
    crossings: Mapping[str, Mapping[str, int]] = _given(
        map_of(map_of(NUMBER)),
        "axis: tier: groups whose lowest common domain is there",
    )
    traffic_bytes: Mapping[str, Mapping[str, float]] = _given(
        map_of(map_of(NUMBER)), "axis: tier: bytes of a step"
    )
    hottest_links: Sequence[HotLink] = _given(
        list_of(facts(HotLink)), "the busiest links"
    )
    critical_path: Sequence[Operation] = _given(
        list_of(facts(Operation)), "operations that set the step, longest first"
    )
    worst_group: WorstGroup | None = _given(
        facts(WorstGroup), "the group that the step waits for"
    )
    roles: Mapping[str, Any] | None = _given(
        map_of(facts(_Role)), "of a workload: what each role takes"
    )

    if not TYPE_CHECKING:  # typed as that of a dict

        def get(self, key: str, default: Any = None) -> Any:
            """The value of a key; the default where it is missing or null."""
            value = super().get(key)
            return default if value is None else value

    def __repr__(self) -> str:
        if self.hop_cost is not None and not self.get("step_time_s"):
            return f"<placer.Score: hop cost {self.hop_cost:,.9g}>"
        if "step_time_s" not in self:
            return f"<placer.Score: {', '.join(self) or 'empty'}>"
        step, away = self.step_time_s, self.exposed_scale_out_s
        exposed = f"{format_seconds(away)} of it exposed on scale-out links"
        return f"<placer.Score: {format_seconds(step)} a step, {exposed}>"


def describe(record: type) -> None:
    """Say in the help of a class what each attribute is, as its schema does."""
    said = "\n".join(f"    {k.called}\n        {k.says}" for k in keys_of(record))
    record.__doc__ = f"{record.__doc__}\n\n    Attributes\n    ----------\n{said}"


describe(Score)
