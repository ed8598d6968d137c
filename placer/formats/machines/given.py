"""What a user says beside the sources of a machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from placer.assumed import NVLINK, OVERSUBSCRIPTION, Assumption
from placer.base.errors import Problem, refuse
from placer.formats.machines.hardware import oversubscribed
from placer.topology import read as topology_files
from placer.topology.build import digest
from placer.topology.gpu_kinds import Gpu, hosts_of_gpu
from placer.topology.uplinks import assumed_uplinks, uplink_tiers

if TYPE_CHECKING:
    from placer.documents.recognise import Source
    from placer.topology.model import Topology

_FOREIGN = 'the formats of "placer topology formats"'
_APART = Assumption(
    NVLINK, "host", "no source says which hosts share NVLink", "-t fabric:FILE"
)


@dataclass(frozen=True)
class Given:
    """Arguments of `placer.formats.machines.machine.read_topology`.

    Attributes
    ----------
    hardware, gpu, gpus_per_node, labels
        As there.
    ratios : mapping of str to float
        How many times the links into a tier are oversubscribed.
    """

    hardware: Source | None = None
    gpu: str | None = None
    gpus_per_node: int | None = None
    ratios: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kind(self) -> Topology | None:
        """The machine whose hosts and links are meant; None where none is."""
        named = self.hardware if self.gpu is None else hosts_of_gpu(self.gpu)
        return None if named is None else topology_files.read_topology(named)

    def with_assumed(
        self, machine: Topology, kind: Topology, assumed: Iterable[Assumption]
    ) -> Topology:
        """The machine with what was assumed of it, its uplinks among that.

        Only a machine that is named as the hardware says how these are.
        """
        keys = {each.key for each in kind.assumed}
        says = uplink_tiers(kind) and OVERSUBSCRIPTION not in keys
        if not (self.ratios or (self.hardware is not None and says)):
            assumed = (*assumed, *assumed_uplinks(machine))
        if machine.scale_up_tier < 1 <= kind.scale_up_tier:
            assumed = (*assumed, _APART)
        return replace(machine, assumed=tuple(assumed))


def plain_machine(plain: Sequence[Topology], count: int, given: Given) -> Topology:
    """A machine that is complete by itself, with uplinks and GPUs that are given."""
    machine = plain[0]
    _check(machine, count, given)
    if given.gpu is not None and given.kind is not None:
        machine = replace(machine, gpu=given.kind.gpu)
    if not given.ratios:
        return machine
    sources = [*machine.sources]
    tiers = oversubscribed(machine.tiers, given.ratios, sources)
    machine = replace(machine, tiers=tuple(tiers), sources=tuple(sources))
    left = tuple(a for a in machine.assumed if a.key != OVERSUBSCRIPTION)
    return replace(machine, assumed=left, sha256=digest(machine))


def _check(machine: Topology, count: int, given: Given) -> None:
    whole = f"the topology {machine.name}"
    own = {
        "hardware": given.hardware,
        "gpus_per_node": given.gpus_per_node,
        "label": given.labels or None,
        "gpu": given.gpu if machine.gpu != Gpu() else None,
    }
    problems = [
        Problem(
            f"{whole} has its own bandwidths and GPUs",
            key=key,
            hint=f"leave it out: it serves {_FOREIGN}",
        )
        for key, value in own.items()
        if value is not None
    ]
    if count > 1:
        message = f"{whole} is complete and cannot be joined with others"
        hint = f"give it alone; what can be joined are {_FOREIGN}"
        problems.append(Problem(message, key="topology", hint=hint))
    refuse(problems)
