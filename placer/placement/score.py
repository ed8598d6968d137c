"""What a placement costs, as a mapping whose keys are attributes too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from placer.base.units import format_seconds


class HotLink(TypedDict):
    """One of the busiest links.

    Attributes
    ----------
    tier, domain : str
        Whose uplink it is.
    direction : str
        ``up``, ``down``, or ``to DOMAIN`` on a link of its own.
    bytes : float
        That a step sends over it.
    busy_s : float, s
        That the link works in a step.
    """

    tier: str
    domain: str
    direction: str
    bytes: float
    busy_s: float


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
    operation : str
        For people.
    seconds : float, s
    replica : int
        Whose pipeline it is; left out where all wait.
    crossing_hops : list of Hop
        Of pipeline messages; left out elsewhere.
    """

    operation: str
    seconds: float
    replica: NotRequired[int]
    crossing_hops: NotRequired[list[Hop]]


class SlowHost(TypedDict):
    """The host that sets the pace of the work.

    Attributes
    ----------
    host : str
    compute_factor : float
        Share of the usual speed, in (0, 1].
    replica, stage : int
        Who waits for it.
    """

    host: str
    compute_factor: float
    replica: int
    stage: int


class WorstGroup(TypedDict):
    """The slowest group of the axis that adds most to the step.

    Attributes
    ----------
    axis : str
    group, groups : int
        Its number, and how many groups the axis has.
    rank, ranks : int
        Its first rank, and how many it has.
    exposed_s : float, s
        Of the axis.
    operation : str
    seconds : float, s
        Of one operation of the group.
    common_tier : str
        The innermost whose domain holds the group.
    domains : int
        Scale-up domains that it touches.
    as_slow : int
        Groups that are as slow, itself among them.
    """

    axis: str
    group: int
    groups: int
    rank: int
    ranks: int
    exposed_s: float
    operation: str
    seconds: float
    common_tier: str
    domains: int
    as_slow: int


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


class Score(dict[str, Any]):
    """What a placement costs, as plain data for plans and JSON.

    It is a dict whose keys are attributes too, so that editors and type checkers know
    them: ``score.step_time_s`` is ``score["step_time_s"]``. Keys that a job does not
    have are missing from the dict, and None as attributes.
    """

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

    @property
    def step_time_s(self) -> float:
        """One training step, s: compute, bubble, fixed and exposed time."""
        return float(self["step_time_s"])

    @property
    def step_time_interval_s(self) -> Sequence[float] | None:
        """Lowest and highest step that the error of the job's compute allows, s."""
        return self.get("step_time_interval_s")

    @property
    def compute_s(self) -> float:
        """The work, s."""
        return float(self["compute_s"])

    @property
    def bubble_s(self) -> float:
        """The pipeline's idle time, s."""
        return float(self["bubble_s"])

    @property
    def fixed_s(self) -> float:
        """What a step pays once, s."""
        return float(self["fixed_s"])

    @property
    def exposed_s(self) -> Mapping[str, float]:
        """Axis or group -> time that compute does not hide, s."""
        return dict(self["exposed_s"])

    @property
    def exposed_scale_out_s(self) -> float:
        """What the step would save if every scale-out link were free, s."""
        return float(self["exposed_scale_out_s"])

    @property
    def exposed_scale_out_share(self) -> float:
        """That saving as a share of the step, from 0 to 1."""
        return float(self["exposed_scale_out_share"])

    @property
    def crossings(self) -> Mapping[str, Mapping[str, int]]:
        """Axis -> tier -> groups whose lowest common domain is of that tier."""
        return dict(self["crossings"])

    @property
    def traffic_bytes(self) -> Mapping[str, Mapping[str, float]]:
        """Axis -> tier -> bytes a step."""
        return dict(self["traffic_bytes"])

    @property
    def hottest_links(self) -> Sequence[HotLink]:
        """The busiest links, busiest first."""
        return list(self["hottest_links"])

    @property
    def critical_path(self) -> Sequence[Operation]:
        """The operations that set the step time, longest first."""
        return list(self["critical_path"])

    @property
    def slowest_host(self) -> SlowHost | None:
        """The host that all wait for, where GPUs of unequal speed are used."""
        return self.get("slowest_host")

    @property
    def worst_group(self) -> WorstGroup | None:
        """The slowest group of the axis that adds most; None if nothing is exposed."""
        return self.get("worst_group")

    @property
    def hop_cost(self) -> float | None:
        """Sum over edges of weight x distance; None for a job without weights."""
        return self.get("hop_cost")

    @property
    def memory_bytes(self) -> MemoryBytes | None:
        """Memory of a GPU of the fullest stage; None for a job without a model."""
        return self.get("memory_bytes")

    @property
    def memory_limit_bytes(self) -> float | None:
        """What a GPU has, bytes; None where the machine does not say."""
        return self.get("memory_limit_bytes")
