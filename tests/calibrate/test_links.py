"""Efficiencies from steps of layouts: what is put in comes out again."""

from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest

from placer.base.errors import InputError
from placer.calibrate.fit import calibrate
from placer.calibrate.links import fit_links, with_efficiencies
from placer.calibrate.measurements import decode_measurements, timed
from placer.cost.step import StepModel
from placer.documents import parse_document
from placer.job.pace import compute_at
from placer.placement.baselines import baseline
from placer.topology.read import read_topology
from tests.commands import data, refusal, run

HEAD = """\
format: placer/measurements
version: 1
topology: dgx-h100-4x8
job: quickstart
points:
"""
LAYOUTS = (
    "pp: 1, dp: 4, micro_batches: 8",
    "tp: 2, pp: 2, dp: 8, micro_batches: 8",
    "tp: 1, pp: 2, dp: 16, micro_batches: 4",
    "tp: 8, pp: 1, dp: 4, micro_batches: 16",
    "tp: 4, pp: 2, dp: 4, micro_batches: 8, micro_batch: 2, recompute: full",
    "tp: 1, pp: 8, dp: 4, micro_batches: 16",
)


def file_of(seconds):
    pairs = zip(LAYOUTS, seconds, strict=True)
    return HEAD + "".join(f"  - {{{lay}, step_time: {s:.9f}}}\n" for lay, s in pairs)


def read(text):
    return decode_measurements(parse_document(text, "m.yaml"), Path())


def steps(time, **share):
    """What the layouts take, by the model, on links that reach so much."""
    known = read(file_of([1.0] * len(LAYOUTS)))
    base, found = timed(known.job, time), []
    for point in known.points:
        machine = with_efficiencies(point.topology, share)
        job = replace(point.job, compute=compute_at(base, point.job))
        gpus = baseline("given-order", machine, job).gpu_of_rank
        found.append(StepModel(machine, job).step(gpus).step_time_s)
    return found


def test_layouts_tell_what_links_reach():
    """A fifth of the line rate between nodes, NVLink as it was.

    What was believed before pulls a little: the deviation of a step is 5 %. Each
    layout is told by the others, within that; with the machine as it was it is not.
    """
    slow_network = fit_links(read(file_of(steps(40e-3, cluster=0.2))))
    assert slow_network.micro_batch_s == pytest.approx(40e-3, rel=0.05)
    node, cluster = slow_network.tiers
    assert (node.tier, cluster.tier) == ("node", "cluster")
    assert node.after == pytest.approx(node.before, rel=0.15)
    assert cluster.after == pytest.approx(cluster.before * 0.2, rel=0.2)
    low, high = cluster.interval
    assert low < cluster.before * 0.2 < high < cluster.before
    assert slow_network.topology.tiers[1].efficiency == cluster.after
    assert "6 layouts" in slow_network.topology.sources[-1]
    assert max(map(abs, slow_network.left_out_errors())) < 0.05
    plain = steps(40e-3)
    worst = min(a / p.step_s for a, p in zip(plain, slow_network.points, strict=True))
    assert worst < 0.9
    assert not any(map(isnan, slow_network.left_out_s))


def test_links_that_no_traffic_takes_stay():
    """Layouts inside a node tell nothing of the network, which is not named."""
    text = HEAD + (
        "  - {tp: 4, pp: 1, dp: 2, micro_batches: 8, step_time: 1.0}\n"
        "  - {tp: 2, pp: 1, dp: 4, micro_batches: 4, step_time: 0.9}\n"
    )
    found = fit_links(read(text.replace("dgx-h100-4x8", "'node:1 gpu:8'")))
    assert [one.tier for one in found.tiers] == ["node"]


def test_what_layouts_cannot_be():
    """One rate alone does not fit layouts; a machine and a model are needed."""
    layouts = read(file_of([1.0] * len(LAYOUTS)))
    with pytest.raises(InputError, match=r"several layouts\n.*--links"):
        calibrate(layouts)
    other = replace(layouts.points[0], topology=read_topology("dgx-h100-32x8"))
    with pytest.raises(InputError, match="several machines"):
        fit_links(replace(layouts, points=(other, *layouts.points)))
    with pytest.raises(InputError, match="model"):
        fit_links(replace(layouts, job=replace(layouts.job, model=None)))
    with pytest.raises(InputError, match=r"recompute: .*most"):
        read(HEAD + "  - {recompute: most, step_time: 1.0}\n")


def test_the_command_writes_the_machine(tmp_path):
    """A compute line, tiers, points; ``-o`` serves as ``-t``, JSON has the same."""
    source, machine = tmp_path / "m.yaml", tmp_path / "machine.json"
    source.write_text(file_of(steps(40e-3, cluster=0.2)))
    text = run("calibrate", "--links", source, "-o", machine)
    assert text.stdout.startswith("compute: {tflops_per_gpu: ")
    assert "efficiency of cluster" in text.stdout
    assert "each point from the others: rms error" in text.stdout
    found = data("calibrate", "--links", source)
    after = {one["tier"]: one["efficiency"] for one in found["tiers"]}
    tiers = {one.name: one.efficiency for one in read_topology(str(machine)).tiers}
    assert tiers == pytest.approx(after)
    assert len(found["points"]) == len(LAYOUTS)


def test_links_are_of_points(tmp_path):
    """A log is of one layout and tells nothing of links."""
    log = tmp_path / "run.out"
    log.write_text(" iteration  2/ 9 | elapsed time per iteration (ms): 1311.0 |\n")
    words = ("--links", f"megatron-log:{log}", "-t", "nvl72", "-j", "quickstart")
    assert "--links needs a file of points" in refusal("calibrate", *words)
