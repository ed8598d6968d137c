"""placer beside Calculon: the same choices, ranked by both.

``python -m benchmarks.calculon --calculon CLONE`` with a clone of
github.com/calculon-ai/calculon, which also wants pandas and psutil. Both are told the
same of machine and model: peak and efficiency of products, links, 80 GiB, no
offloading, scores stored, tp waited for, gradients overlapped, sequence parallelism.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.grids.ranking import spearman
from placer.cost.footprint.stages import footprint
from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.memory import Memory
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import ElementBytes, Overlap
from placer.job.work import product_efficiency
from placer.topology.read import parse_topology
from placer.tune.space import Legal, Space

if TYPE_CHECKING:
    from placer.topology.model import Topology
    from placer.tune.choice import Choice

# Calculon's word for what backward computes again, by placer's.
RECOMPUTE = {"none": "none", "core_attn": "attn_only", "full": "full"}


class Case(NamedTuple):
    """A model of Calculon on a number of GPUs of one of its systems."""

    model: str
    system: str
    gpus: int
    batch: int


HEAD = """| case | fit: Calculon / placer / both | rank | placer's best | in Calculon \
| Calculon's best | in placer |
|---|--:|--:|---|--:|---|--:|"""

CASES = (
    Case("gpt3-175B", "h100_80g_nvl8", 512, 1536),
    Case("gpt3-175B", "a100_80g", 512, 1536),
    Case("megatron-1T", "h100_80g_nvl8", 3072, 3072),
    Case("megatron-1T", "a100_80g", 3072, 3072),
)


@dataclass(frozen=True)
class Both:
    """A choice and its step, s, by either; infinite where it does not fit."""

    choice: Choice
    calculon: float
    placer: float


@dataclass(frozen=True)
class Peer:
    """A clone of Calculon, loaded."""

    clone: Path
    package: Any

    @classmethod
    def of(cls, clone: Path) -> Peer:
        """Load it, from the clone alone."""
        sys.path.insert(0, str(clone))
        return cls(clone, importlib.import_module("calculon"))

    def read(self, folder: str, name: str) -> dict[str, Any]:
        """One of its JSON files."""
        found: dict[str, Any] = json.loads(
            (self.clone / folder / f"{name}.json").read_text()
        )
        return found

    def step_s(self, case: Case, choice: Choice) -> float:
        """Its step time of a choice, s; infinite where it refuses it."""
        llm = self.package.llm.Llm
        model = llm(
            llm.Application(self.read("models", case.model)), logging.Logger("peer")
        )
        system = self.package.System(self.read("systems", case.system))
        try:
            model.compile(system, llm.Execution.from_json(_execution(case, choice)))
            model.run(system)
        except llm.Error:
            return inf
        return float(model.get_total_time())


def _execution(case: Case, choice: Choice) -> dict[str, Any]:
    """The choice in Calculon's words, each axis on the nearest network for it."""
    inside = choice.tp, choice.tp * choice.pp, choice.gpus
    nets = [0 if size <= 8 else 1 for size in inside]
    sliced = choice.tp > 1
    return {
        "num_procs": case.gpus,
        "tensor_par": choice.tp,
        "pipeline_par": choice.pp,
        "data_par": choice.dp,
        "tensor_par_net": nets[0],
        "pipeline_par_net": nets[1],
        "data_par_net": nets[2],
        "batch_size": case.batch,
        "microbatch_size": choice.micro_batch,
        "datatype": "float16",
        "fused_activation": True,
        "attention_type": "multihead",
        "activation_recompute": RECOMPUTE[choice.recompute],
        "pipeline_interleaving": choice.vp,
        "optimizer_sharding": choice.sharding == "zero1" and choice.dp > 1,
        "tensor_par_comm_type": "rs_ag" if sliced else "ar",
        "tensor_par_overlap": "none",
        "seq_par_ag_redo": sliced and choice.recompute != "full",
        "data_par_overlap": choice.dp > 1,
        "weight_offload": False,
        "activations_offload": False,
        "optimizer_offload": False,
        "training": True,
    }


_MACHINE = """
format: placer/topology
version: 1
name: calculon
tiers:
  - {{name: node, size: 8, bandwidth: {0[bandwidth]}GB/s, efficiency: {0[efficiency]},
      latency: {0[latency]}, scale_up: true}}
  - {{name: cluster, bandwidth: {1[bandwidth]}GB/s, efficiency: {1[efficiency]},
      latency: {1[latency]}}}
layout: "cluster:1 node:{nodes}"
"""


def machine_of(system: dict[str, Any], gpus: int) -> Topology:
    """The system as placer has machines."""
    text = _MACHINE.format(*system["networks"], nodes=gpus // 8)
    return parse_topology(text, "calculon")


def job_of(model: dict[str, Any], system: dict[str, Any]) -> Job:
    """The model as placer has jobs: blocks alone, which is what Calculon counts."""
    heads = model["attn_heads"]
    shape = Model(
        "blocks",
        layers=model["num_blocks"],
        hidden=model["hidden"],
        ffn=model["feedforward"],
        heads=heads,
        kv_heads=heads,
        vocab=1,
        gated=False,
        tied_embeddings=True,
        head_dim=model["attn_size"],
    )
    job = Job(
        "blocks",
        Parallelism(),
        model=shape,
        sequence=model["seq_size"],
        bytes=ElementBytes(),
        overlap=Overlap(tp=False, cp=False, pp=False, ep=False),
        memory=Memory(
            attention="unfused", dropout=True, gradient_bytes=2.0, reserve=0.0
        ),
    )
    peak = system["matrix"]["float16"]["tflops"]
    rate = peak * product_efficiency(job)
    return replace(job, compute=Compute(tflops_per_gpu=rate, attention_rate=1.0))


def choices(job: Job, case: Case) -> Iterator[Choice]:
    """What both can express and both find legal."""
    assert job.model
    space = Space((case.gpus,), case.batch, cp=(1,), sharding=("ddp", "zero1"))
    space = replace(space, recompute=tuple(RECOMPUTE))
    legal = Legal(job, job.model, space)
    for shape in legal.shapes():
        if shape.embedding == shape.loss == 0:
            yield from legal.variants(shape)


def compared(peer: Peer, case: Case) -> list[Both]:
    """All choices that either says fit."""
    system = peer.read("systems", case.system)
    job = job_of(peer.read("models", case.model), system)
    machine = machine_of(system, case.gpus)
    limit = system["mem1"]["GiB"] * 2**30
    found = []
    for choice in choices(job, case):
        mine = choice.applied(job)
        needs = footprint(mine)
        fits = needs is not None and needs.total <= limit
        theirs = peer.step_s(case, choice)
        if not fits and theirs == inf:
            continue
        step = StepModel(machine, mine).step(np.arange(case.gpus)).step_time_s
        found.append(Both(choice, theirs, step if fits else inf))
    return found


def place(values: Sequence[float], mine: float) -> int:
    """At which place, from 1, a value stands."""
    return 1 + sum(value < mine for value in values)


def row(case: Case, found: Sequence[Both]) -> str:
    """A line of the table: the best of what fits in both, and how the other sees it."""
    common = [one for one in found if one.calculon < inf and one.placer < inf]
    theirs = [one.calculon for one in found if one.calculon < inf]
    mine = [one.placer for one in found if one.placer < inf]
    ours = min(common, key=lambda one: (one.placer, one.choice))
    other = min(common, key=lambda one: (one.calculon, one.choice))
    shared = [one.calculon for one in common], [one.placer for one in common]
    rank = spearman(np.array(shared[0]), np.array(shared[1]))
    return (
        f"| {case.model}, {case.gpus:,} {case.system.split('_')[0].upper()} "
        f"| {len(theirs):,} / {len(mine):,} / {len(common):,} | {rank:.2f} "
        f"| {_text(ours)} | {_seen(theirs, shared[0], ours.calculon)} "
        f"| {_text(other)} | {_seen(mine, shared[1], other.placer)} |"
    )


def _seen(every: Sequence[float], common: Sequence[float], step: float) -> str:
    """The place of a step among all and among those that fit in both; its distance."""
    behind = step / min(common) - 1
    return f"{place(every, step)}, {place(common, step)}, +{behind:.1%}"


def _text(one: Both) -> str:
    c = one.choice
    sizes = f"tp {c.tp}, pp {c.pp}, vp {c.vp}, b {c.micro_batch}"
    return f"{sizes}, {c.recompute}, {c.sharding}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0, or 2 where Calculon is missing."""
    parser = argparse.ArgumentParser("python -m benchmarks.calculon")
    parser.add_argument("--calculon", type=Path, required=True, help="clone of it")
    parser.add_argument("--cases", default="0,1,2,3", help="numbers of the cases")
    parser.add_argument("--json", type=Path, help="every choice, as a file")
    options = parser.parse_args(arguments)
    try:
        peer = Peer.of(options.calculon)
    except ImportError as error:
        print(f"skipped: Calculon cannot be loaded ({error})", file=sys.stderr)
        return 2
    print(HEAD)
    every = []
    for case in (CASES[int(number)] for number in options.cases.split(",")):
        found = compared(peer, case)
        print(row(case, found), flush=True)
        every += [
            [*case, one.choice.to_dict(), one.calculon, one.placer] for one in found
        ]
    if options.json:
        options.json.write_text(json.dumps(every))
    return 0


if __name__ == "__main__":
    sys.exit(main())
