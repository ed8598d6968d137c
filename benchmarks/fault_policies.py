"""How a job gets its trays after a fault, without placer: three policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

import placer
from benchmarks.fault_replay import (
    GPUS,
    RACKS,
    REPLICA,
    TRAYS,
    BoolArray,
    IntArray,
    Seats,
)
from placer.cost.step import StepModel
from placer.documents import document_of
from placer.job.read import decode_job
from placer.job.resize import resized
from placer.job.write import to_document
from placer.topology.read import decode_topology
from placer.topology.write import compact_document

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

MACHINE, JOB = "azure-gb200-mlperf-v6", "llama3.1-405b-mlperf-v6"
RACK_OF_TRAY = np.repeat(np.arange(RACKS), TRAYS)


@dataclass(frozen=True, eq=False)
class Cluster:
    """The machine, the job at every number of replicas, and what a step takes.

    Attributes
    ----------
    machine : Topology
        22 racks of 18 trays under one tier.
    job : Job
        Only its tensor parallel groups must stay in a node.
    """

    machine: Topology
    job: Job
    _models: dict[int, StepModel] = field(default_factory=dict)
    _known: dict[bytes, float] = field(default_factory=dict)

    @classmethod
    def of_presets(cls) -> Cluster:
        """The links of one preset, the job of another."""
        about = compact_document(placer.read_topology(MACHINE))
        about["name"] = f"{RACKS} racks"
        about["tiers"] = [t for t in about["tiers"] if t["name"] != "block"]
        about["layout"] = f"cluster:1 rack:{RACKS} node:{TRAYS}"
        work = to_document(placer.read_job(JOB)) | {"require": {"tp": "node"}}
        return cls(
            decode_topology(document_of(about, "machine.yaml")),
            decode_job(document_of(work, "job.yaml")),
        )

    def model(self, replicas: int) -> StepModel:
        """The cost model of the job with so many replicas."""
        if replicas not in self._models:
            job = resized(self.job, dp=replicas)
            self._models[replicas] = StepModel(self.machine, job)
        return self._models[replicas]

    def step_s(self, trays: IntArray) -> float:
        """Step time of replicas on trays, s."""
        # Only which racks the nodes of a replica lie in counts, whatever their names.
        racks = RACK_OF_TRAY[trays]
        _, first, named = np.unique(racks, return_index=True, return_inverse=True)
        key = np.argsort(np.argsort(first))[named].astype(np.int8).tobytes()
        if key not in self._known:
            gpus = (trays[..., None] * GPUS + np.arange(GPUS)).ravel()
            self._known[key] = self.model(len(trays)).step(gpus).step_time_s
        return self._known[key]

    @cached_property
    def micro_batch_s(self) -> float:
        """What one more micro-batch adds to a step of whole racks, s."""
        trays = np.arange(RACKS * TRAYS).reshape(RACKS, TRAYS)[:, :REPLICA]
        job, longer = self.model(RACKS).job, 6
        more = resized(job, micro_batches=longer * job.micro_batches)
        gpus = (trays[..., None] * GPUS + np.arange(GPUS)).ravel()
        added = StepModel(self.machine, more).step(gpus).step_time_s - self.step_s(
            trays
        )
        return added / ((longer - 1) * job.micro_batches)


def moved(before: Seats | None, kept: IntArray, trays: IntArray) -> int:
    """Ranks that changed trays; ``kept[i]`` was replica ``i`` before, -1 for new."""
    if before is None:
        return 0
    old = kept >= 0
    return GPUS * int((before.trays[kept[old]] != trays[: len(kept)][old]).sum())


@dataclass(frozen=True, eq=False)
class WholeRacks:
    """A replica is 16 trays of one rack; the two others are its spares."""

    cluster: Cluster
    name: str = "whole racks"

    def most(self, up: BoolArray) -> int:
        """Racks with 16 trays up."""
        return int((self._free(up) >= REPLICA).sum())

    def seats(self, before: Seats | None, up: BoolArray) -> Seats:
        """Replicas stay in their racks, on the trays they have; racks too thin go."""
        old = before.trays if before else np.empty((0, REPLICA), dtype=np.int64)
        home = RACK_OF_TRAY[old[:, 0]]
        fit = np.flatnonzero(self._free(up) >= REPLICA)
        stay = np.flatnonzero(np.isin(home, fit))
        rows = [_refilled(old[r], up, home[r] == RACK_OF_TRAY) for r in stay]
        for rack in np.setdiff1d(fit, home):
            here = np.flatnonzero(up & (rack == RACK_OF_TRAY))
            rows.append(here[:REPLICA])
        trays = np.array(rows)
        return Seats(
            trays, self.cluster.step_s(trays), moved=moved(before, stay, trays)
        )

    def _free(self, up: BoolArray) -> IntArray:
        return np.bincount(RACK_OF_TRAY[up], minlength=RACKS)


def _refilled(row: IntArray, up: BoolArray, allowed: BoolArray) -> IntArray:
    """A replica's trays, those that are down replaced by others that are allowed."""
    spare = np.setdiff1d(np.flatnonzero(up & allowed), row)
    new = row.copy()
    down = np.flatnonzero(~up[row])
    new[down] = spare[: len(down)]
    return new


def any_trays(up: BoolArray) -> int:
    """Replicas that fit on the trays that are up, whatever their racks."""
    return int(up.sum()) // REPLICA


@dataclass(frozen=True, eq=False)
class SortedHosts:
    """Healthy hosts by name, filled one after the other: what a rendezvous does."""

    cluster: Cluster
    name: str = "sorted hosts"

    def most(self, up: BoolArray) -> int:
        """As many as there are trays for."""
        return any_trays(up)

    def seats(self, before: Seats | None, up: BoolArray) -> Seats:
        """The first trays by name."""
        count = self.most(up)
        trays = np.flatnonzero(up)[: count * REPLICA].reshape(count, REPLICA)
        kept = np.arange(count)
        kept[len(before.trays) if before else 0 :] = -1
        return Seats(
            trays, self.cluster.step_s(trays), moved=moved(before, kept, trays)
        )


@dataclass(frozen=True, eq=False)
class BestFit:
    """Racks by best fit: the tightest that holds a replica, else the emptiest ones.

    A tray that fails is replaced by one of its rack, else of the fullest rack.
    """

    cluster: Cluster
    name: str = "best fit"

    def most(self, up: BoolArray) -> int:
        """As many as there are trays for."""
        return any_trays(up)

    def seats(self, before: Seats | None, up: BoolArray) -> Seats:
        """Replicas keep the trays that are up; new ones are placed one by one."""
        old = before.trays if before else np.empty((0, REPLICA), dtype=np.int64)
        lost = (~up[old]).sum(axis=1)
        count = self.most(up)
        stay = np.sort(np.argsort(lost, kind="stable")[: min(count, len(old))])
        rows = list(old[stay].copy())
        free = up.copy()
        free[old[stay]] = False
        for row in rows:
            for slot in np.flatnonzero(~up[row]):
                row[slot] = self._substitute(RACK_OF_TRAY[row[slot]], free)
                free[row[slot]] = False
        while len(rows) < count:
            rows.append(self._new(free))
            free[rows[-1]] = False
        trays = np.array(rows)
        return Seats(
            trays, self.cluster.step_s(trays), moved=moved(before, stay, trays)
        )

    def _substitute(self, rack: int, free: BoolArray) -> int:
        room = np.bincount(RACK_OF_TRAY[free], minlength=RACKS)
        if not room[rack]:
            rack = int(np.where(room > 0, room, TRAYS + 1).argmin())
        return int(np.flatnonzero(free & (rack == RACK_OF_TRAY))[0])

    def _new(self, free: BoolArray) -> IntArray:
        room = np.bincount(RACK_OF_TRAY[free], minlength=RACKS)
        whole = np.flatnonzero(room >= REPLICA)
        racks = (
            whole[np.argsort(room[whole], kind="stable")[:1]]
            if len(whole)
            else np.argsort(-room, kind="stable")
        )
        taken = [np.flatnonzero(free & (rack == RACK_OF_TRAY)) for rack in racks]
        return np.concatenate(taken)[:REPLICA]
