"""Layouts that were measured: ``measured.yaml``, and the sheets of Hagemann et al."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

import yaml

from placer.job.axes import Parallelism
from placer.job.memory import Memory
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.pace import Rates, held_by, pace, share_of
from placer.job.parallel import DataParallel, ElementBytes, Overlap, TensorParallel
from placer.tune.choice import Choice

FILE = Path(__file__).with_name("measured.yaml")
# Looked for when the model was finished: nothing was chosen with them in view.
HELD_OUT = Path(__file__).with_name("held_out.yaml")
# What products reach at the best, of 312 TFLOP/s of an A100: the starting point alone.
START_TFLOPS = 150.0
# Of an A100's 2.04 TB/s (NVIDIA's data sheet) what tensors of some 30 MB reach: five
# sixths, between 0.75 from 10 MB and 0.9 from 100 MB on (Calculon caa4b11f,
# systems/a100_80g.json).
MEMORY_BANDWIDTH = 1.7e12
# To launch a layer of a micro-batch, forward and backward: three quarters of the 3.56
# ms in which Megatron-DeepSpeed on two A100 has done so and forward again, with so
# little work that tp 1 and 2 take as long (`one_node.layer_seconds`).
LAUNCH_TIME = 2.67e-3


@dataclass(frozen=True)
class Layout:
    """One run: the series' job on one GPU, what was chosen, and what was measured.

    ``seconds`` is the step, infinite where the run was out of memory.
    """

    alone: Job
    choice: Choice
    seconds: float

    @property
    def job(self) -> Job:
        """The job as it ran, at the rate that its series begins with."""
        return self.at_rate(START_TFLOPS)

    def at_rate(self, tflops: float) -> Job:
        """The job when products reach such a rate on one GPU, and memory its own."""
        assert self.alone.model
        model = self.alone.model
        share, layers = share_of(self.alone, model), held_by(self.alone, model)
        time = pace(share, layers, Rates(1 / (tflops * 1e12)))
        compute = replace(self.alone.compute, micro_batch_time=time)
        return self.choice.applied(replace(self.alone, compute=compute))

    @property
    def samples(self) -> int:
        """Samples of a step."""
        return self.choice.global_batch


@dataclass(frozen=True)
class Series:
    """Layouts of one model on one machine.

    Attributes
    ----------
    title : str
    gpus : int
    machine : mapping of str to str
        Bandwidth by tier, and the GPUs of a node (``size``) where they are not eight.
    layouts : tuple of Layout
    cuts_messages : bool
        Whether the ranks of a tp group each send their part of a message between
        stages, and gather it within the node.
    gate_apart : bool
        Whether the gradients of both inputs of a gate are all-reduced apart.
    """

    title: str
    gpus: int
    machine: Mapping[str, str]
    layouts: tuple[Layout, ...]
    cuts_messages: bool = False
    gate_apart: bool = False


def measured(file: Path = FILE) -> list[Series]:
    """The series of a file such as ``measured.yaml``."""
    entries = yaml.safe_load(file.read_text())["series"]
    return [megatron_series(entry) for entry in entries]


def megatron_series(entry: Mapping[str, Any]) -> Series:
    """A series as a file has it: of Megatron-DeepSpeed but for what it says."""
    heads = {"kv_heads": entry["model"]["heads"]}
    shape = Model(entry["title"], **heads | _GPT | entry["model"])
    memory = Memory(**_UNFUSED | entry.get("memory", {}))
    job = _job(
        shape,
        entry["sequence"],
        entry["sharding"],
        memory,
        sequence_parallel=entry.get("sequence_parallel", False),
    )
    job = replace(
        job,
        host_time=float(entry.get("host_time", 0.0)),
        compute=replace(job.compute, **entry.get("gpu", {})),
        bytes=ElementBytes(**entry.get("bytes", {})),
    )
    layouts = []
    for tp, pp, size, seconds, *other in entry["layouts"]:
        batch, vp = [*other, *(entry["batch"], 1)[len(other) :]]
        again, sharding = memory.recompute, entry["sharding"]
        choice = _choice(entry["gpus"], batch, tp, pp, size, again, sharding)
        choice = choice._replace(vp=vp, **entry.get("stages", {}))
        layouts.append(Layout(job, choice, seconds))
    # DeepSpeed, runtime/pipe/engine.py: is_pipe_partitioned.
    cuts_messages = entry.get("cuts_messages", True)
    machine = entry["machine"]
    return Series(entry["title"], entry["gpus"], machine, tuple(layouts), cuts_messages)


_GPT = {"gated": False, "tied_embeddings": True}
_UNFUSED = {"recompute": "full", "attention": "unfused", "dropout": True}


def _job(
    model: Model,
    sequence: int,
    sharding: str,
    memory: Memory,
    *,
    sequence_parallel: bool = False,
) -> Job:
    """What all runs share: Megatron-LM of 2022, in which nothing overlaps."""
    return Job(
        "grid",
        Parallelism(),
        model=model,
        sequence=sequence,
        overlap=Overlap(tp=False, cp=False, pp=False, ep=False),
        compute=Compute(
            memory_bandwidth=MEMORY_BANDWIDTH, multiprocessors=108, peak_tflops=312.0
        ),
        tensor_parallel=TensorParallel(sequence_parallel),
        data_parallel=DataParallel(
            sharding, overlap_reduce=False, overlap_gather=False
        ),
        memory=memory,
    )


def _choice(
    gpus: int, batch: int, tp: int, pp: int, size: int, again: str, sharding: str
) -> Choice:
    dp = gpus // (tp * pp)
    return Choice(
        tp=tp,
        pp=pp,
        dp=dp,
        etp=tp,
        micro_batch=size,
        micro_batches=batch // dp // size,
        recompute=again,
        sharding=sharding,
    )


# Hagemann et al. 2023, arXiv 2311.05610: LLaMA on DGX A100, ZeRO-1, a vocabulary of
# 128,000; a global batch of 2,048 samples of 2,048 tokens or 512 of 8,192.
_LLAMA = {"13B": (40, 5120, 13824, 40), "30B": (60, 6656, 17920, 52),
          "65B": (80, 8192, 22016, 64)}  # fmt: skip
_KERNELS = {"flash_attention2": "", "flash_attention2 + RMS kernel": ", fused norm"}
# Runs with lower numbers, found after the model was finished. Attention keeps its
# scores but in the first.
_EARLIER = {
    "flash_attentionv1.0.8": ", FlashAttention 1",
    "fused": ", Megatron's softmax",
    "torch": ", PyTorch's softmax",
}
_SPLIT = {"1": ", SP", "0": ", no SP", None: ""}
_MODES = {"disabled": "none", "every_layer": "full"}
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
# Embedding, layers, last norm and output layer are cut into stages of as many pieces,
# the first ones of one more (Aleph-Alpha/scaling 737f855, PipePartitionMethod.UNIFORM).
_EMBEDDING, _LOSS = 1.0, 2.0
_DGX = {"node": "300GB/s", "cluster": "25GB/s"}
# Gradients are kept in BF16 and copied to FP32 for an all-reduce, with ZeRO too, and
# weights are gathered in BF16 (the same, core/optimizer/allreduce.py and
# parameter_group.py). An all-reduce of 4 bytes sends what a reduce-scatter of 8 does.
_ALL_REDUCED = ElementBytes(gradient=8.0, parameter_gather=2.0)


def layouts_of(clone: Path, *, earlier: bool = False) -> list[Series]:
    """The series in a clone of Aleph-Alpha's repository of that paper.

    Its sheets are under a licence of their own and not copied here. ``earlier`` takes
    the runs with older kernels instead.
    """
    found, kernels = [], _EARLIER if earlier else _KERNELS
    for file in sorted((clone / "data").glob("**/*.xlsx")):
        rows = list(_rows(file))
        for (kernel, name), (split, more) in product(kernels.items(), _SPLIT.items()):
            mine = [
                row
                for row in rows
                if row["kernel"] == kernel and row.get("sequence_parallel") == split
            ]
            if mine:
                found.append(_llama(file.stem, name + more, mine))
    return found


def _llama(stem: str, kernel: str, rows: list[dict[str, str]]) -> Series:
    match = re.match(r"llama_(\d+B)", stem)
    assert match, stem
    layers, hidden, ffn, heads = _LLAMA[match[1]]
    shape = Model(match[1], layers, hidden, ffn, heads, heads, 128_000)
    sequence, batch = (8192, 512) if "8k" in stem else (2048, 2048)
    gpus = int(rows[0]["World Size"])
    layouts = []
    for row in rows:
        seconds = _seconds(row["Average Step Time"])
        if seconds is None:
            continue
        job = _job(
            shape,
            sequence,
            "zero1",
            Memory(
                "full",
                norm="fused" if "fused norm" in kernel else "unfused",
                attention="unfused" if "softmax" in kernel else "fused",
                gradient_bytes=2.0,
                keep_gathered=True,
            ),
            sequence_parallel=row.get("sequence_parallel") == "1",
        )
        # The output layer gathers its logits, and the loss is PyTorch's, in FP32 (the
        # same, transformer/model/layers/lm_head.py and losses/cross_entropy.py).
        shared = replace(job.tensor_parallel, loss="gathered")
        job = replace(job, bytes=_ALL_REDUCED, tensor_parallel=shared)
        tp, pp = int(row["model_parallel_size"]), int(row["pipe_parallel_size"])
        again = _MODES[row["activation_checkpointing_type"]]
        size = int(row["micro_batch_size"])
        choice = _choice(gpus, batch, tp, pp, size, again, "zero1")
        choice = choice._replace(embedding=_EMBEDDING, loss=_LOSS)
        if choice.global_batch == batch:
            layouts.append(Layout(job, choice, seconds))
    title = f"{match[1]}, {sequence:,} tokens{kernel}"
    # Two column-parallel products have the input of the gate (core/nn/mlp.py).
    return Series(title, gpus, _DGX, tuple(layouts), gate_apart=True)


def _seconds(text: str | None) -> float | None:
    """Seconds of a step; infinite when out of memory, None after another error."""
    if text and text.startswith("OOM"):
        return float("inf")
    try:
        return float(text or "")
    except ValueError:
        return None


def _rows(file: Path) -> Iterator[dict[str, str]]:
    """Rows of the first sheet of a workbook, below its title, by their heading."""
    with ZipFile(file) as book:
        texts = [
            "".join(part.text or "" for part in entry.iter(f"{_SHEET}t"))
            for entry in ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
        ]
        sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    lines = []
    for row in sheet.iter(f"{_SHEET}row"):
        cells = {}
        for cell in row:
            value = cell.findtext(f"{_SHEET}v") or ""
            column = (cell.get("r") or "").rstrip("0123456789")
            cells[column] = texts[int(value)] if cell.get("t") == "s" else value
        lines.append(cells)
    _title, heading, *others = lines
    for cells in others:
        yield {name: cells.get(column, "") for column, name in heading.items()}
