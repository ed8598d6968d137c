"""The stages of replicas: which groups each waits for, and the walk over them.

Shapes: D replicas, P stages; cell ``d P + p`` is stage ``p`` of replica ``d``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.network import PlacedNetwork
from placer.cost.pipeline_order import Block, blocks
from placer.cost.schedule import HEAD, WALKED
from placer.cost.stage_times import (
    StageTime,
    context_time,
    expert_time,
    pipeline_hops,
    tensor_time,
)
from placer.solve.problem.colocation import join
from placer.solve.score.groups import Rows
from placer.solve.score.operations import Added
from placer.solve.score.questions import Lines, Question, ToldNetwork, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.cost.network import Network
    from placer.cost.step import StepModel
    from placer.solve.score.operations import Operations

SAME = Lines(np.array([1.0]), np.array([0.0]))


def add_stages(model: StepModel, operations: Operations) -> None:
    """Add what tp, cp, ep and pp make stages wait for, and the pipeline."""
    axes = model.job.parallelism
    joined = np.arange(axes.dp)
    if model.job.model is not None:
        for name, time in _times(model).items():
            joined = _add_axis(model, operations, name, time, joined)
    cells = _cells(model)[operations.atoms.ranks]
    atom = np.repeat(np.arange(operations.num_atoms), cells.shape[1])
    of_atom = Rows.pairs(atom, cells.ravel(), operations.num_atoms)
    atoms = of_atom.turned(axes.dp * axes.pp)
    share = model.volumes.layer_share(axes.pp, axes.vp)
    numbers = [model.fixed_s, model.work.forward_s, model.work.backward_s]
    numbers += [share[0, 0], share[-1, -1], model.paces.first, model.paces.last]
    numbers += [model.work.host_forward_s, model.work.host_backward_s]
    numbers += model.paces.ends
    replicas = Rows.pairs(joined, np.arange(axes.dp), int(joined.max()) + 1)
    _set_pipeline(model, operations)
    operations.step.set_replicas(
        axes.dp,
        axes.pp,
        np.array(numbers, dtype=np.float64),
        np.broadcast_to(np.asarray(model.paces.full, float), (axes.pp,)).copy(),
        of_atom.start,
        of_atom.entry,
        atoms.start,
        atoms.entry,
        model.fabric.speed_of_gpu is not None,
        joined.astype(np.int32),
        replicas.start,
        replicas.entry,
    )


def _times(model: StepModel) -> dict[str, Callable[[Network], StageTime]]:
    """What prices each axis that has members on a network."""
    job, sizes, work, axes = (
        model.job,
        model.volumes,
        model.cover,
        model.job.parallelism,
    )
    found: dict[str, Callable[[Network], StageTime]] = {
        "tp": lambda network: tensor_time(network, job, sizes, work),
        "cp": lambda network: context_time(network, job, sizes, work),
        "ep": lambda network: expert_time(network, job, sizes, work),
        "pp": lambda network: pipeline_hops(network, job, sizes),
    }
    return {axis: found[axis] for axis in found if axes.size(axis) > 1}


def _cells(model: StepModel) -> IntArray:
    """Cell of each rank; shape (R,)."""
    at, stages = model.job.parallelism.coordinates, model.job.parallelism.pp
    return np.asarray(at["dp"] * stages + at["pp"], dtype=np.int64)


def _add_axis(
    model: StepModel,
    operations: Operations,
    name: str,
    time: Callable[[Network], StageTime],
    joined: IntArray,
) -> IntArray:
    """Add an axis; the label of replicas that wait for each other, with its groups."""
    told = ToldNetwork()
    time(told)
    questions = told.asked
    cell_of_rank, count = (
        _cells(model),
        model.job.parallelism.dp * model.job.parallelism.pp,
    )
    if name == "pp":
        questions = questions[:1]  # what closes a ring of chunks is only counted
    if name == "tp" and _depends_on_place(model, operations, questions[0]):
        added, cells = _asked_cells(operations, time, count)
        forward, backward = SAME, _ratio(time)
    else:
        added = operations.add(questions)
        forward, backward = _lines(time, "forward"), _lines(time, "backward")
        cells = _touched(questions[0], added, cell_of_rank)
    groups = cells.turned(count)
    operations.step.add_axis(
        added.number,
        cells.start,
        cells.entry,
        groups.start,
        groups.entry,
        forward.slope,
        forward.start,
        backward.slope,
        backward.start,
        name == "pp",
    )
    return _joined(joined, cells, model.job.parallelism.pp) if name == "ep" else joined


def _depends_on_place(
    model: StepModel, operations: Operations, question: Question
) -> bool:
    """Whether groups overlap in one domain only, and may be in several."""
    atoms = operations.atom_of(question.members)
    is_cut = operations.sites.scale_up < 0 or (atoms != atoms[:, :1]).any()
    return bool(model.job.overlap.tp and is_cut)


def _asked_cells(
    operations: Operations, time: Callable[[Network], StageTime], count: int
) -> tuple[Added, Rows]:
    """Every cell as a group, of which the scorer says what its forward waits."""
    fabric = operations.fabric

    def tell(gpu_of_rank: IntArray) -> FloatArray:
        return time(PlacedNetwork(fabric, gpu_of_rank)).forward

    cells = np.arange(count)
    number = operations.ask(count, 1, tell)
    return Added(number, cells, count), Rows.pairs(cells, cells, count)


def _first(seconds: float) -> Callable[[int], float]:
    """The answer to the first question, where all add up."""
    return lambda question: seconds if question == 0 else 0.0


def _lines(time: Callable[[Network], StageTime], name: str) -> Lines:
    """What a pass waits, from the seconds of its slowest group."""

    def waits(seconds: float) -> float:
        found = time(ToldNetwork(_first(seconds)))
        return float(getattr(found, name)[0, 0])

    return lines_of(waits)


def _ratio(time: Callable[[Network], StageTime]) -> Lines:
    """What backward waits, from what forward does."""
    found = time(ToldNetwork(lambda _: 1024.0))
    forward, backward = found.forward[0, 0], found.backward[0, 0]
    return Lines(np.array([backward / forward if forward else 0.0]), np.array([0.0]))


def _touched(question: Question, added: Added, cell_of_rank: IntArray) -> Rows:
    """Cells that the members of each group are in."""
    members = question.members
    cells = cell_of_rank[members]
    if question.kind == "send":  # a hop is its sender's
        return Rows.pairs(added.of_row, cells.ravel(), added.count)
    if len(added.of_row) > len(members):  # a row waits for all of its messages
        width = members.shape[1]
        of_row = added.of_row.reshape(members.shape)
        return Rows.pairs(
            np.repeat(of_row.ravel(), width),
            np.repeat(cells, width, axis=0).ravel(),
            added.count,
        )
    groups = np.repeat(added.of_row, members.shape[1])
    return Rows.pairs(groups, cells.ravel(), added.count)


def _joined(label: IntArray, cells: Rows, stages: int) -> IntArray:
    """One label for all replicas that groups join, directly or through others."""
    replicas = cells.entry // stages
    first = np.repeat(replicas[cells.start[:-1]], np.diff(cells.start))
    found = join(label, np.stack((first, replicas), axis=1))
    return np.unique(found, return_inverse=True)[1].reshape(-1)


def _set_pipeline(model: StepModel, operations: Operations) -> None:
    """The order of the work of one replica, long runs of it once."""
    job = model.job
    stages, chunks = job.parallelism.pp, job.parallelism.vp
    repetitions = max(0, -(-job.micro_batches // stages) - WALKED)
    walked = blocks(stages, job.micro_batches - repetitions * stages, chunks)
    head, tail = walked[:HEAD], walked[HEAD:]
    flat = [np.array([*block], dtype=np.int32).ravel() for block in walked]
    none = np.zeros(0, dtype=np.int32)
    keys = max(one.key for block in walked for one in block) + 1
    operations.step.set_pipeline(
        stages,
        chunks * stages,
        repetitions,
        job.overlap.pp,
        np.concatenate(flat[: len(head)]),
        flat[HEAD - 1] if repetitions else none,
        np.concatenate(flat[HEAD:]) if tail else none,
        np.array(_open(head), dtype=np.int32),
        max(keys, 1),
    )


def _open(walked: tuple[Block, ...]) -> list[int]:
    """Keys of results that nobody has used when these blocks are done."""
    done = {one.key for block in walked for one in block if one.key >= 0}
    used = {one.source for block in walked for one in block if one.source >= 0}
    return sorted(done - used)
