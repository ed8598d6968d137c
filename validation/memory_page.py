"""The page of memory: what GPUs held, what the model says, what is missed and why."""

from __future__ import annotations

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
# Memory beside public runs

What GPUs of public runs held beside what placer expects of the same jobs. `python -m
validation` writes this page from `validation/points/memory.yaml`, and a test compares
it with what the code says now. The model is in [memory](../memory.md).

Nothing is fitted. A job says what its run said. *Allocated* is the framework's own
peak, *reserved* what its allocator took (compared with what is allocated over 0.95),
*device* the whole GPU. Where the log is that of one pipeline rank, that rank is
compared."""

FORMULA = """\
Figure 1 of Korthikanti et al. (arXiv 2205.05198; Calculon, `llm/validation.py`) has
what 22B, 175B and 1T keep of activations with and without sequence parallelism,
selective and full recomputation. placer gives the same fifteen values, and states that
are larger by the norms, which the formula leaves out (`tests/footprint`)."""

OPTIONS = """\
Changes against a run without the option, GiB. Peaks of equal runs are up to 0.8 GiB
apart, so smaller changes say little."""

CHOICES = """\
{runs} runs are known by their degrees alone. They ran, so they must fit, and {fit} do.
Too large: {over}. Sources: {source}."""

WHY = """\
- **Llama 3, row 1**: 0.2 GiB too much of 79.65. The paper frees tensors early and tunes
  its schedule (section 3.3.2).
- **GB200, 512 GPUs**: measured memory hardly falls with more GPUs (93.5, 91.6, 92.4),
  while the optimizer's shards fall by 7 GiB.
- **Megatron**: interleaved runs keep 1 GiB more than their states, those with latent
  attention 0.5 to 3.6 GiB (registered buffers of the dispatcher). Mixtral's experts are
  taken as balanced. Two runs of one DeepSeek proxy peak at 94 and 113 GiB, by version.
- **torchtitan, tensor parallel**: what is missing is not known. Runs of equal size
  differ as much: 82.5 or 75.3 GiB at 262,144 tokens a replica.
- **NVFP4**: which tensors a compiled product keeps is not documented.
- **Sailor, p 4, dp 2** ran as p 4, dp 4 did and holds 8 GiB less. The run of a single
  micro-batch never filled its pipeline.
- **70B, t 8 and mlp**: the signs are right, the changes a half and a quarter of those
  expected: the peak then lies elsewhere than in the layers.
- **70B, v 10 and norms** were measured to add up to 1.4 GiB, as equal runs differ."""


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
    parts = [INTRODUCTION, "## In short", _measured(), "## Formulas", FORMULA]
    parts += ["## Options", OPTIONS, _changes()]
    choices = memory_choices()
    parts += [f"## {choices.title}", _verdicts(choices)]
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


def _measured() -> str:
    """Every series: how far off, and the runs outside its aim by name."""
    rows = []
    every: list[float] = []
    kept = 0
    for series in memory_series():
        errors = {point.name: series.error(point) for point in series.points}
        outside = {n: error for n, error in errors.items() if abs(error) > series.aim}
        rows.append(
            (
                f"{series.title} ({series.of}; {series.source})",
                f"{series.aim:.0%}",
                *_inside(list(errors.values()), len(errors) - len(outside)),
                ", ".join(f"{n} {percent(error, 1)}" for n, error in outside.items()),
            )
        )
        every += errors.values()
        kept += len(errors) - len(outside)
    rows.append(("all", "", *_inside(every, kept), ""))
    return table(("series", "aim", "worst error", "inside", "outside"), rows)


def _inside(errors: list[float], inside: int) -> tuple[str, str]:
    return percent(max(errors, key=abs), 1), f"{inside} of {len(errors)}"


def _changes() -> str:
    rows = []
    for series in memory_options():
        bare, *others = series.points
        for point in others:
            measured = point.measured - bare.measured
            expected = series.expected(point) - series.expected(bare)
            option = f"{series.title}: {point.name}"
            rows.append((option, f"{measured:+.2f}", f"{expected:+.2f}"))
    return table(("option", "measured", "expected"), rows)


def _verdicts(series: MemorySeries) -> str:
    """How many of the published runs fit, and those that do not."""
    needs = {point.name: series.expected(point) for point in series.points}
    over = [
        f"{point.name}, {needs[point.name]:.2f} of {point.measured:.2f} GiB"
        for point in series.points
        if needs[point.name] > point.measured
    ]
    return CHOICES.format(
        runs=len(needs),
        fit=len(needs) - len(over),
        over="; ".join(over) or "none",
        source=series.source,
    )
