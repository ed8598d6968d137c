"""1,440 steps on one node: ``python -m benchmarks.grids.one_node``.

Layouts of 36 small models on 2, 4 and 8 GPUs. A series has one model, one number of
GPUs and one global batch; those of less than eight layouts are left out.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.grids.ranking import Ranking, agreed_rate, at_rate
from benchmarks.grids.series import LAUNCH_TIME, Series, megatron_series

FILE = Path(__file__).with_name("one_node.csv")
LEAST = 8
# What launching takes was measured on these; they are not judged.
LAUNCH_GPUS, LAUNCH_HIDDEN = 2, 1024


def rows() -> Iterator[tuple[list[int], float]]:
    """Numbers of each row as its head names them, and the seconds."""
    lines = [line for line in FILE.read_text().splitlines() if line[0] != "#"]
    for *numbers, milliseconds in csv.reader(lines):
        yield [int(number) for number in numbers], float(milliseconds) / 1e3


def one_node(host_time: float = LAUNCH_TIME) -> list[Series]:
    """The series that are judged."""
    found = defaultdict(list)
    for numbers, seconds in rows():
        gpus, batch, size, hidden, heads, layers, sequence, tp, _, pp = numbers
        if gpus != LAUNCH_GPUS:
            key = gpus, batch, hidden, heads, layers, sequence
            found[key].append([tp, pp, size, seconds])
    return [
        _series(*key, layouts, host_time)
        for key, layouts in sorted(found.items())
        if len(layouts) >= LEAST
    ]


def _series(
    gpus: int,
    batch: int,
    hidden: int,
    heads: int,
    layers: int,
    sequence: int,
    layouts: list[list[float]],
    host_time: float,
) -> Series:
    model = {"layers": layers, "hidden": hidden, "ffn": 4 * hidden, "heads": heads}
    entry = {
        "title": f"width {hidden}, {layers} layers, {batch} samples",
        "machine": {"node": "300GB/s", "cluster": "12.5GB/s"},
        "model": model | {"vocab": 51200},
        "sequence": sequence,
        "gpus": gpus,
        "batch": batch,
        "sharding": "ddp",
        "host_time": host_time,
        "layouts": layouts,
    }
    return megatron_series(entry)


def layer_seconds() -> float:
    """Median of a layer of a micro-batch where work is least, on two GPUs.

    One sample, no pipeline, two micro-batches or more.
    """
    found = []
    for numbers, seconds in rows():
        gpus, batch, size, hidden, _, layers, _, _, dp, pp = numbers
        passes = batch // (dp * size)
        least = gpus == LAUNCH_GPUS and hidden == LAUNCH_HIDDEN and size == pp == 1
        if least and passes > 1:
            found.append(seconds / passes / layers)
    return float(np.median(found))


def ranked_together(several: Sequence[Series]) -> list[Ranking]:
    """All series at one rate: where launches take the time, a series shows none."""
    rate = agreed_rate(several)
    return [at_rate(one, rate) for one in several]


def row(title: str, judged: list[Ranking]) -> str:
    """A line of the table."""
    ranks = np.array([one.correlation for one in judged])
    regrets = np.array([one.regret for one in judged])
    scatter = np.mean([one.scatter for one in judged])
    return (
        f"| {title} | {len(judged)} | {sum(len(one.layouts) for one in judged)} "
        f"| {np.median(ranks):.2f} | {ranks.min():.2f} | {(ranks >= 0.8).sum()} "
        f"| {np.median(regrets):.1%} | {regrets.max():.1%} "
        f"| {(regrets <= 0.05).sum()} | {scatter:.0%} |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.grids.one_node")
    parser.add_argument("--no-launches", action="store_true", help="they cost nothing")
    options = parser.parse_args(arguments)
    host_time = 0.0 if options.no_launches else LAUNCH_TIME
    judged = ranked_together(one_node(host_time))
    print(
        "| GPUs, width | series | layouts | rank | least | of 0.8 | regret | most "
        "| of 5% | scatter |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    kinds = defaultdict(list)
    for one in judged:
        model = one.series.layouts[0].alone.model
        assert model
        kinds[f"{one.series.gpus}, {model.hidden:,}"].append(one)
    for title, some in kinds.items():
        print(row(title, some))
    print(row("all", judged))
    print(f"at {judged[0].tflops:.0f} TFLOP/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
