"""Degrees that were published, beside those that placer would choose.

``python -m benchmarks.choices``: runs whose steps are calibrated (`validation/points`),
then those of ``choices.yaml``; with ``--held-out`` those that were found afterwards.
Each must be legal and fit; the table says how far its step is behind the best, both as
the model has them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

import placer.base.errors
from placer.base.units import parse_bytes
from placer.cost.step import StepModel
from placer.cost.work import on_gpu
from placer.documents import parse_document
from placer.job.fixed import with_fixed_time
from placer.job.pace import rates as rates_of
from placer.job.read import decode_job
from placer.topology.allocation import allocate
from placer.tune.choice import recompute_name
from validation.files import SERIES
from validation.steps import calibrated

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology
    from placer.tune.tuning import Tuning

FILE = Path(__file__).with_suffix(".yaml")
# Precision of the runs whose job leaves it out.
_RAN: Mapping[str, Mapping[str, Any]] = {
    "llama3.1-405b-gb200-fp4": {"gemm": "nvfp4"},
    "llama3.1-405b-eos": {"gemm": "fp8", "parameter_bytes": 2.0},
    "llama3.1-405b-carina": {"gemm": "fp8"},
    "llama3.1-405b-theia": {"gemm": "nvfp4"},
    "gpt3-175b-h100": {"gemm": "fp8"},
    "deepseek-v3-gb300": {"gemm": "mxfp8"},
}


@dataclass(frozen=True)
class Run:
    """A run that was published.

    Attributes
    ----------
    title : str
    machine : Topology
    job : Job
        With the degrees that ran and calibrated times.
    memory : float, bytes
        Of a GPU.
    is_calibrated : bool
        On a series of steps, rather than on its own throughput.
    framework : str
        Whose rules hold.
    ran : mapping
        Further choices of the run: arguments of `placer.tune`.
    """

    title: str
    machine: Topology
    job: Job
    memory: float
    is_calibrated: bool
    framework: str = "megatron"
    ran: Mapping[str, Any] = field(default_factory=dict)


def runs() -> Iterator[Run]:
    """Runs that were there when the model was made, those that are calibrated first."""
    for name in SERIES:
        fit, known = calibrated(name), _RAN.get(name, {})
        for prediction in fit.predictions:
            point = prediction.point
            job = fit.applied_to(point.job)
            job = replace(job, memory=replace(job.memory, **known))
            title, memory = f"{name}: {point.name}", point.topology.gpu.memory
            yield Run(title, point.topology, job, memory, True)
    entries = yaml.safe_load(FILE.read_text())
    for entry in entries["runs"]:
        yield _reported(entry, entries["models"])


def held_out() -> Iterator[Run]:
    """Runs that were found when the model was finished, recomputed as they were."""
    entries = yaml.safe_load(FILE.read_text())
    for entry in entries["held_out"]:
        run = _reported(entry, entries["models"])
        ran: dict[str, Any] = {"recompute": [recompute_name(run.job)]}
        if run.job.parallelism.ep > 1:
            ran["etp"] = [run.job.parallelism.etp]
        yield replace(run, ran=ran | {"sharding": [_sharding(entry)]})


def _sharding(entry: Mapping[str, Any]) -> str:
    return str(entry.get("sharding", "zero1"))


def _reported(entry: Mapping[str, Any], models: Mapping[str, Any]) -> Run:
    """A run of the file, at the rate at which placer predicts its throughput."""
    machine = placer.read_topology(entry["machine"])
    axes = dict(entry["axes"])
    inside = axes.get("tp", 1) * axes.get("cp", 1) * axes.get("pp", 1)
    axes["dp"] = entry["gpus"] // inside
    document = {
        "format": "placer/job",
        "version": 1,
        "name": "reported",
        "parallelism": {**axes, "order": "tp-cp-ep-dp-pp"},
        "model": models.get(entry["model"], entry["model"]),
        "sequence": entry["sequence"],
        "micro_batch": entry["micro_batch"],
        "micro_batches": entry["batch"] // axes["dp"] // entry["micro_batch"],
        "data_parallel": {"sharding": _sharding(entry)},
        "overlap": {"tp": True, "cp": True, "pp": True, "ep": False},
        "compute": {"tflops_per_gpu": 1000.0},
        "memory": {"gemm": entry["gemm"]},
        "launcher": {"ranks": "node-contiguous"},
    }
    for key in ("stages", "expert_parallel", "context_parallel", "host_time"):
        document |= {key: entry[key]} if key in entry else {}
    for key in ("memory", "overlap", "data_parallel"):
        document[key] |= entry.get(key, {})
    job = decode_job(parse_document(json.dumps(document), entry["title"]))
    tokens = entry["batch"] * entry["sequence"] / entry["gpus"]
    step = entry["step"] if "step" in entry else tokens / entry["tokens"]
    job = _at_step(machine, on_gpu(with_fixed_time(job), machine.gpu), step)
    size = entry.get("gpu_memory")
    memory = parse_bytes(size) if size else machine.gpu.memory
    framework = entry.get("framework", "megatron")
    return Run(entry["title"], machine, job, memory, False, framework)


def _in_whole_parts(machine: Topology) -> Topology:
    """The machine with as many nodes a scale-up domain as a power of two has.

    Groups of 64 that are laid along hosts then leave no rack of 72.
    """
    domain = machine.domain_of_node[machine.scale_up_tier]
    first = np.unique(domain, return_index=True)[1]
    nodes = np.bincount(domain)
    place = np.arange(len(domain)) - first[domain]
    kept = 2 ** np.floor(np.log2(nodes)).astype(np.int64)
    return machine.select(np.flatnonzero(place < kept[domain]))


def _at_step(machine: Topology, job: Job, step_s: float) -> Job:
    """The job at the rate at which it takes so long, ranks along the hosts."""
    machine = _in_whole_parts(machine)
    gpus = np.arange(job.world_size)
    low, high = 1.0, 100_000.0
    for _ in range(40):
        rate = (low * high) ** 0.5
        job = replace(job, compute=replace(job.compute, tflops_per_gpu=rate))
        if StepModel(machine, job).step(gpus).step_time_s > step_s:
            low = rate
        else:
            high = rate
    return job


@dataclass(frozen=True)
class Judged:
    """A run beside the best choice.

    ``ran`` is None where placer calls it illegal or too large; ``why`` says so.
    """

    run: Run
    best: Tuning
    ran: Tuning | None
    why: str = ""

    @property
    def behind(self) -> float:
        """How much longer the step that ran is than the best."""
        if self.ran is None:
            return float("nan")
        return float(_step(self.ran) / _step(self.best)) - 1

    @property
    def most_behind(self) -> float:
        """How much longer it is than what no choice can beat."""
        if self.ran is None:
            return float("nan")
        least = self.best.lower_bound_s
        return float(_step(self.ran) / least) - 1 if least else float("inf")


def _step(found: Tuning) -> float:
    return float(found.rows[0]["step_time_s"])


def judged(run: Run, time_limit: float) -> Judged:
    """The best choice for the GPUs and batch of a run, and the run itself."""
    job, axes = run.job, run.job.parallelism
    asked: dict[str, Any] = {
        "gpus": [job.world_size],
        "memory": run.memory,
        "framework": run.framework,
        "top": 1,
        "time_limit": time_limit,
    }
    machine = allocate(run.machine, None, ())
    best = placer.tune(machine, job, **asked)
    if not _has_room(job, machine):
        return Judged(run, best, None, "products would have to be faster than the peak")
    try:
        ran = placer.tune(
            machine,
            job,
            **asked,
            **run.ran,
            tp=[axes.tp],
            cp=[axes.cp],
            pp=[axes.pp],
            vp=[axes.vp],
            ep=[axes.ep],
            micro_batch=[job.micro_batch],
        )
    except placer.InfeasibleError as error:
        return Judged(run, best, None, str(error).split("\n")[0])
    return Judged(run, best, ran)


def _has_room(job: Job, machine: Topology) -> bool:
    """Whether the step has time for all that the model counts beside products."""
    known = on_gpu(job, machine.gpu)
    return known.model is None or rates_of(known, known.model).share == 1.0


def row(found: Judged) -> str:
    """A line of the table."""
    best = _text(found.best)
    if found.ran is None:
        return f"| {found.run.title} | refused: {found.why} | | {best} | |"
    return (
        f"| {found.run.title} | {_text(found.ran)} | {_step(found.ran):.4g} s "
        f"| {best} | {_step(found.best):.4g} s | {behind(found)} |"
    )


def behind(found: Judged) -> str:
    """A share, and where the search was cut what it may be at the most."""
    least, most = f"{found.behind:.1%}", f"{found.most_behind:.1%}"
    is_proved = found.most_behind - found.behind < 1e-3
    return least if is_proved else f"{least} to {most}"


def _text(found: Tuning) -> str:
    top = found.rows[0]
    axes = {k: v for k, v in top["parallelism"].items() if v > 1 and k != "etp"}
    parts = [f"{axis} {size}" for axis, size in axes.items() if axis != "dp"]
    parts.append(f"b {top['micro_batch']}")
    if top["recompute"] != "none":
        parts.append(top["recompute"])
    parts.append(top["sharding"])
    memory = top["memory_bytes"] / found.memory_limit
    return f"{', '.join(parts)} ({memory:.0%})"


def rates() -> Iterator[str]:
    """Lines of a table: the shares of their GPUs' peaks at which runs are met."""
    found: dict[tuple[str, str], list[float]] = {}
    for run in (*runs(), *held_out()):
        if run.is_calibrated:
            continue
        gemm = {"mxfp8": "fp8", "nvfp4": "fp4"}.get(
            run.job.memory.gemm, run.job.memory.gemm
        )
        kind = "mixture" if run.job.parallelism.ep > 1 else "dense"
        share = run.job.compute.tflops_per_gpu * 1e12 / run.machine.gpu.peak[gemm]
        found.setdefault((gemm, kind), []).append(share)
    yield "| products in | model | runs | 1 of 10 below | median | 1 of 10 above |"
    yield "|---|---|--:|--:|--:|--:|"
    for (gemm, kind), shares in sorted(found.items()):
        low, middle, high = np.percentile(shares, (10, 50, 90))
        shown = f"{low:.0%} | {middle:.0%} | {high:.0%}"
        yield f"| {gemm} | {kind} | {len(shares)} | {shown} |"


def _line(run: Run, time_limit: float) -> str:
    try:
        return row(judged(run, time_limit))
    except placer.base.errors.StoppedError:
        return f"| {run.title} | time was up | | | | |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.choices")
    parser.add_argument("--only", default="", help="runs whose title has this")
    parser.add_argument("--time-limit", type=float, default=120.0, help="for each")
    parser.add_argument("--held-out", action="store_true", help="those found later")
    parser.add_argument("--rates", action="store_true", help="what products sustain")
    options = parser.parse_args(arguments)
    if options.rates:
        print(*rates(), sep="\n")
        return 0
    print("| run | ran | model | placer's choice | model | behind |")
    print("|---|---|--:|---|--:|--:|")
    for run in held_out() if options.held_out else runs():
        if options.only in run.title:
            print(_line(run, options.time_limit), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
