"""The page of memory: what GPUs held, what the model says, what is missed and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placer.cost.footprint.stages import footprints
from validation.markdown import percent, table
from validation.memory_points import (
    GIB,
    MemorySeries,
    expected_states,
    job_of,
    memory_choices,
    memory_options,
    memory_series,
)

INTRODUCTION = """\
# Memory, validated

How well does placer predict what a GPU holds? This page puts what GPUs of public runs
held beside what placer expects of the same jobs, errors included. `python -m
validation` writes it from `validation/points/memory.yaml`, and a test compares it
with what the code says now. The model is explained in [memory](memory.md).

Rules: nothing is fitted. A job says what its run said: degrees, precision,
recomputation, sharding. Numbers are GiB of one GPU. *Allocated* is the framework's own
peak, which leaves out the part `other`. *Reserved* is what its allocator took from the
GPU; it is compared with what is allocated over 0.95 for every run. *Device* is the
whole GPU. Where the log is that of one pipeline rank, that rank is compared; the
fullest one is beside it."""

FORMULA = """\
Values of figure 1 of Korthikanti et al. (arXiv 2205.05198; NVIDIA's Calculon,
`llm/validation.py`), sequences of 2,048, all layers of the first stage. These test
arithmetic: they are the paper's formulas, not measurements. The last bits of the states
are norms, which the formula leaves out."""

OPTIONS = """\
Changes against the first row. Peaks of equal runs are up to 0.8 GiB apart (58.8, 59 and
59.6 for the 70B), so changes smaller than that say little."""

CHOICES = """\
Runs that are known by their degrees alone. They ran, so they must fit: parts as
expected, the total with what lies outside the allocator, and what a GPU has."""

WHY = """\
- **Llama 3, row 1.** 0.2 GiB too much of 79.65. The paper frees tensors early and tunes
  its schedule (section 3.3.2), which takes less than what is expected here.
- **GB200, 512 GPUs.** Measured memory hardly falls with more GPUs there (93.5, 91.6
  and 92.4), while the optimizer's shards fall by 7 GiB. One law cannot meet all three.
- **MLPerf, fullest stage.** The first rank logs. Its first chunk holds the embedding in
  the place of a layer, so the second rank holds 11 layers' worth of micro-batches more.
- **Megatron, states.** The interleaved runs keep 1 GiB more after a step than their
  states; both were run with attention masks from the data loader. The runs with latent
  attention keep 0.5 to 3.6 GiB more: an extra layer for further tokens and, in the
  proxies of DeepSeek-V3, registered buffers of the expert dispatcher, which the model
  does not know.
- **Mixtral.** Peaks are 5 to 7 % low with balanced experts: `expert_parallel.imbalance`
  is 1 here, since no run prints its own.
- **DeepSeek proxy, GB200.** Two runs of one configuration peak at 94 and 113 GiB, by
  version of its expert dispatcher.
- **15B on GB200.** It overlaps tensor-parallel traffic with products, which takes
  buffers of its own.
- **torchtitan, tensor parallel.** The loss over a sharded vocabulary runs without
  compilation; placer counts the four FP32 tensors of its backward pass
  (`torch/distributed/tensor/parallel/loss.py`). What is missing is not known. Runs of
  equal size differ as much: 405B with 262,144 tokens a replica reserves 82.5 or 75.3
  GiB, and the interleaved schedule, which holds more micro-batches, 10 GiB less than
  1F1B.
- **NVFP4.** Which tensors a compiled NVFP4 product keeps is not documented; the model
  keeps its inputs in FP4.
- **Sailor, p 4, dp 2.** It ran as p 4, dp 4 did and holds 8 GiB less; no term of the
  job differs, so the plan it names may not be the one that ran. The run of a single
  micro-batch never filled its pipeline. Of OPT-350M with short micro-batches most is
  the 5 GB that Sailor books beyond torch.
- **Moonlight** holds less than 18 bytes a parameter take; its recipe is not published
  with the numbers. Only changes are compared.
- **70B, t 8 and mlp.** The signs are right, the changes measured are a half and a
  quarter of those expected: the peak then lies elsewhere than in the layers.
- **70B, v 10 and norms.** Both were measured to add up to 1.4 GiB. By the schedule
  smaller chunks hold fewer layers, and less is kept; the difference is what equal runs
  differ by."""


@dataclass(frozen=True)
class Figure:
    """One model of the paper: sizes, degrees and the values of its bars, GiB."""

    name: str
    layers: int
    hidden: int
    heads: int
    micro_batch: int
    tp: int
    pp: int
    vp: int
    states: float
    bars: tuple[float, ...]


FIGURES = (
    Figure(
        "22B", 48, 6144, 64, 4, 8, 1, 1, 45.5625,
        (59.25, 39.5625, 29.25, 9.5625, 4.5),
    ),
    Figure(
        "175B", 96, 12288, 96, 1, 8, 8, 3, 45.5625,
        (66.84375, 41.4140625, 37.78125, 12.3515625, 5.8125),
    ),
    Figure(
        "1T", 128, 25600, 160, 1, 8, 64, 1, 32.958984375,
        (131.25, 76.5625, 81.25, 26.5625, 12.5),
    ),
)  # fmt: skip
# Sequence parallelism and recomputation of each bar.
BARS = (
    (False, "none"),
    (True, "none"),
    (False, "selective"),
    (True, "selective"),
    (False, "full"),
)


def memory_page() -> str:
    """The whole page, with a final newline."""
    parts = [INTRODUCTION, "## In short", _aims(), "## Formulas", FORMULA, _figures()]
    parts += ["## Measured"]
    for series in memory_series():
        parts += [f"### {series.title}", series.source, _measured(series)]
    parts += ["## Options", OPTIONS]
    for series in memory_options():
        parts += [f"### {series.title}", series.source, _changes(series)]
    choices = memory_choices()
    parts += [f"## {choices.title}", CHOICES, choices.source, _verdicts(choices)]
    return "\n\n".join([*parts, "## Off, and why", WHY]) + "\n"


def figure_values(figure: Figure) -> tuple[float, tuple[float, ...]]:
    """States and kept activations that placer expects of a figure's model, GiB."""
    states, kept = 0.0, []
    for sequence, recompute in BARS:
        model = {"layers": figure.layers, "hidden": figure.hidden, "vocab": 1}
        model |= {"ffn": 4 * figure.hidden, "heads": figure.heads, "gated": False}
        job = job_of(
            {
                "model": model | {"kv_heads": figure.heads},
                "parallelism": {"tp": figure.tp, "pp": figure.pp, "vp": figure.vp},
                "sequence": 2048,
                "micro_batch": figure.micro_batch,
                "micro_batches": 512,
                "tensor_parallel": {"sequence": sequence},
                "data_parallel": {"sharding": "ddp"},
                "memory": {
                    "attention": "unfused",
                    "dropout": True,
                    "gradient_bytes": 4,
                    "recompute": recompute,
                },
            }
        )
        first = footprints(job)[0]
        states = expected_states(first)
        kept.append(first.kept / GIB)
    return states, tuple(kept)


def _figures() -> str:
    rows = []
    for figure in FIGURES:
        states, kept = figure_values(figure)
        published = (figure.states, *figure.bars)
        rows.append((f"{figure.name}, published", *map(_gib, published)))
        rows.append((f"{figure.name}, placer", *map(_gib, (states, *kept))))
    head = ("model", "states", "none", "sequence", "selective", "both", "full")
    return table(head, rows)


def _aims() -> str:
    rows = []
    for series in memory_series():
        errors = [series.error(point) for point in series.points]
        worst = max(errors, key=abs)
        inside = sum(abs(error) <= series.aim for error in errors)
        rows.append(
            (
                series.title,
                f"{series.aim:.0%}",
                percent(worst, 1),
                f"{inside} of {len(errors)}",
            )
        )
    return table(("series", "aim", "worst error", "inside"), rows)


def _measured(series: MemorySeries) -> str:
    return table(("run", *_heads(series)), _rows(series))


def _heads(series: MemorySeries) -> tuple[str, ...]:
    heads = (f"{series.of}, measured", "expected", "error", "fullest stage")
    if any(point.states for point in series.points):
        heads = ("states, measured", "expected", "error", *heads)
    return heads


def _rows(series: MemorySeries) -> Iterator[tuple[str, ...]]:
    for point in series.points:
        found = series.footprint_of(point)
        stages = footprints(point.job)
        fullest = max(stages, key=lambda stage: stage.total)
        row = [point.name]
        if point.states:
            states = expected_states(found)
            row += [_gib(point.states), _gib(states)]
            row.append(percent(states / point.states - 1, 1))
        row += [_gib(point.measured), _gib(series.expected(point))]
        row.append(percent(series.error(point), 1))
        row.append(f"{_gib(series.seen(fullest))} (stage {fullest.stage})")
        yield tuple(row)


def _changes(series: MemorySeries) -> str:
    bare, *others = series.points
    rows = [(bare.name, _gib(bare.measured), "", "", "")]
    for point in others:
        measured = point.measured - bare.measured
        expected = series.expected(point) - series.expected(bare)
        small = abs(measured) < 1.5 and abs(expected) < 1.5
        agree = (
            "yes" if measured * expected >= 0 else "no" if not small else "no, small"
        )
        rows.append(
            (
                point.name,
                _gib(point.measured),
                f"{measured:+.2f}",
                f"{expected:+.2f}",
                agree,
            )
        )
    return table(("option", "measured", "change", "expected change", "same sign"), rows)


def _verdicts(series: MemorySeries) -> str:
    rows = []
    for point in series.points:
        found = series.footprint_of(point)
        total, has = series.seen(found), point.measured
        rows.append(
            (
                point.name,
                _gib(expected_states(found)),
                _gib(found.activations / GIB),
                _gib(found.other / GIB),
                _gib(total),
                _gib(has),
                "yes" if total <= has else "no",
            )
        )
    head = ("run", "states", "activations", "other", "total", "a GPU has", "fits")
    return table(head, rows)


def _gib(value: float) -> str:
    return f"{value:.2f}"
