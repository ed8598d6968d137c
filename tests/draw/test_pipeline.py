"""Chart and timetable of the pipeline hold every piece, and add up to the step."""

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
from hypothesis import given, settings

from placer.cost.step import StepModel
from placer.draw import pipeline as module
from placer.draw.pipeline import band, pipeline_chart, slowest_run, timetable
from placer.topology.read import read_topology
from tests.cost.random_cases import random_case
from tests.cost.test_schedule import pipelines
from tests.draw.pictures import SVG, of_class, parse
from tests.page.plans import small_job


def a_step(seed):
    case = random_case(seed, with_model=True)
    return StepModel(case.topology, case.job).step(case.gpu_of_rank)


@pytest.mark.parametrize("seed", range(12))
def test_adds_up(seed):
    """One mark a piece; pipeline and what follows it are as long as the step."""
    step = a_step(seed)
    job = step.model.job
    axes = job.parallelism
    root = parse(pipeline_chart(step))
    (layer,) = of_class(root, "pieces")
    forward, backward = (of_class(layer, f"piece {k}") for k in ("forward", "backward"))
    count = job.micro_batches * axes.pp * axes.vp
    assert len(forward) == len(backward) == count
    ends = [right(e) for e in backward]
    after = of_class(root, "after")[0].findall(f"{SVG}rect")
    total = 1600 - 24 - 84
    spent = sum(float(e.get("data-seconds", "nan")) for e in after)
    pipeline = step.pipeline_s(step.axes)
    assert spent + pipeline == pytest.approx(step.step_time_s, rel=1e-9)
    width = pipeline / step.step_time_s * total
    assert max(ends) - 84 == pytest.approx(width, abs=0.8)
    if after:
        assert right(after[-1]) == pytest.approx(1600 - 24, abs=0.1)


@pytest.mark.parametrize("seed", range(10))
def test_bands_are_the_chart(seed):
    """What a page shows is every piece of the chart, to one scale, and as long."""
    step = a_step(seed)
    run = slowest_run(step)
    axes = step.model.job.parallelism
    bands = [parse_band(band(run, own, 2 * run.total_s)) for own in run.bands]
    assert sum(high for high, *_ in bands) == len(run.stages)
    work = sum(width for _, shapes, _ in bands for width in shapes)
    wanted = sum(piece.end_s - piece.start_s for piece in run.pieces)
    count = 2 * step.model.job.micro_batches * axes.pp * axes.vp
    assert len(run.pieces) == count
    room = 5000 / run.total_s
    assert work == pytest.approx(wanted * room, abs=5 * count)
    for _, _, after in bands:
        assert sum(after) == pytest.approx(
            sum(part.seconds for part in run.after) * room, abs=8.1 * len(after)
        )


def parse_band(text):
    """Stages of a band, and the widths of pieces and of what follows them."""
    root = Xml.fromstring(text)
    paths = "".join(e.get("d", "") for e in root.iter("path") if e.get("fill"))
    widths = [float(width) for width in re.findall(r"h([0-9]+)v", paths)]
    after = [float(e.get("width", 0)) for e in root.iter("rect")]
    return int(root.get("viewBox", "").split()[-1]), widths, after


def right(element):
    get = element.get
    return float(get("x")) + float(get("width"))


def test_many_micro_batches(monkeypatch):
    """Where there are too many pieces only whole groups of the first are drawn."""
    step = a_step(3)
    model = step.model
    axes = replace(model.job.parallelism, vp=1)
    job = replace(model.job, parallelism=axes, micro_batches=1000)
    long = StepModel(model.topology, job)
    gpus = random_case(3, with_model=True).gpu_of_rank
    monkeypatch.setattr(module, "MOST_PIECES", 24 * axes.pp)
    root = parse(pipeline_chart(long.step(gpus)))
    drawn = 12 // axes.pp * axes.pp or axes.pp
    assert len(of_class(root, "piece forward")) == drawn * axes.pp
    said = [e.text or "" for e in root.iter(f"{SVG}text")]
    assert any(f"the first {drawn} of 1,000 micro-batches" in text for text in said)


def test_the_middle_of_many_stages_is_left_out():
    """Of thirty stages sixteen have a row tall enough for its name, and a break."""
    job = small_job(60, 8, pp=30)
    topology = read_topology("node:30 gpu:8")
    root = parse(pipeline_chart(StepModel(topology, job).step(np.arange(30))))
    said = [e.text or "" for e in root.iter(f"{SVG}text")]
    rows = [int(text.split()[1]) for text in said if text.startswith("stage ")]
    assert rows == [*range(8), *range(22, 30)]
    assert "14 more stages" in said
    pieces = [*of_class(root, "piece forward"), *of_class(root, "piece backward")]
    tops = sorted({float(e.get("y", 0)) for e in pieces})
    assert len(tops) == 16
    assert min(b - a for a, b in pairwise(tops)) >= 14
    assert tops[8] - tops[7] > 2 * (tops[1] - tops[0]) - 8


@settings(max_examples=80, deadline=None)
@given(case=pipelines(whole=True))
def test_every_piece_once(case):
    """Each chunk of each micro-batch runs once forward and, after that, backward."""
    stages, micro_batches, chunks, overlap = case
    num_stages = len(stages.forward)
    pieces = timetable(stages, micro_batches, chunks, overlap)
    place = {(p.stage, p.is_forward, p.micro_batch, p.chunk): p for p in pieces}
    assert len(place) == len(pieces) == 2 * num_stages * micro_batches * chunks
    for (stage, is_forward, batch, chunk), piece in place.items():
        if not is_forward:
            assert place[stage, True, batch, chunk].end_s <= piece.start_s + 1e-9
        for before in _needed(place, piece, num_stages, chunks):
            assert before.end_s <= piece.start_s + 1e-9
    for stage in range(num_stages):
        own = sorted((p for p in pieces if p.stage == stage), key=lambda p: p.start_s)
        for one, other in pairwise(own):
            assert one.end_s <= other.start_s + 1e-9


def _needed(place, piece, num_stages, chunks):
    """The piece whose result this one works on, by the order of the layers."""
    depth = piece.chunk * num_stages + piece.stage + (-1 if piece.is_forward else 1)
    if not 0 <= depth < num_stages * chunks:
        return []
    chunk, stage = divmod(depth, num_stages)
    return [place[stage, piece.is_forward, piece.micro_batch, chunk]]
