"""Maps show every rank once, and outline exactly the groups that leave their domain."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.draw import placement_map as module
from placer.draw.grouping import COLOURS
from placer.draw.placement_map import placement_map
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.build import build_plan, placement_of_plan
from placer.placement.placement import Placement
from placer.testing.strategies import machine, tiny_plan
from tests.draw.pictures import (
    SVG,
    groups_by_loops,
    hover,
    leaving_by_loops,
    of_class,
    parse,
    plans,
)


def axes_with_members(job):
    return [a for a in COLOURS if job.parallelism.size(a) > 1 or a == "dp"]


def leaving(topology, job, plan, axis):
    gpus = placement_of_plan(plan, topology).gpu_of_rank
    return leaving_by_loops(topology, job, axis, gpus)


@settings(max_examples=20, deadline=None)
@given(case=plans(), data=st.data())
def test_every_rank_is_a_cell(case, data):
    """Where GPUs are shown there is one cell a rank, and each names its own rank."""
    _, job, plan = case
    axis = data.draw(st.sampled_from(axes_with_members(job)))
    cells = of_class(parse(placement_map(plan, axis)), "cell")
    assert sorted(int(cell.get("data-rank", -1)) for cell in cells) == list(
        range(plan.world_size)
    )
    places = {(cell.get("x"), cell.get("y")) for cell in cells}
    assert len(places) == plan.world_size
    for cell in cells:
        rank = int(cell.get("data-rank", -1))
        where = f"{plan.host_of_rank[rank]} GPU {plan.gpu_of_rank[rank]}"
        assert hover(cell).splitlines()[0] == f"rank {rank}: {where}"


@settings(max_examples=20, deadline=None)
@given(case=plans(), data=st.data())
def test_outlines(case, data):
    """Outlined are exactly the groups that leave their domain, if these are few."""
    topology, job, plan = case
    axis = data.draw(st.sampled_from(axes_with_members(job)))
    away = leaving(topology, job, plan, axis)
    root = parse(placement_map(plan, axis))
    outlined = [e for e in of_class(root, "p-out") if e.get("data-group")]
    few = 3 * len(away) <= len(groups_by_loops(job, axis))
    assert len(outlined) == (len(away) if few else 0)
    said = {
        int(cell.get("data-rank", -1))
        for cell in of_class(root, "cell")
        if "leaves its" in hover(cell)
    }
    assert said == {rank for group in away for rank in group}
    assert len(root.findall(f".//{SVG}rect[@class='p-out']")) == (len(outlined) > 0)
    assert any(f"{len(away):,} of " in t or not away for t in texts(root))


@settings(max_examples=20, deadline=None)
@given(case=plans(), most=st.integers(0, 4), data=st.data())
def test_tiles_add_up(case, most, data):
    """Tiles are the domains of one tier; their ranks and leaving groups are right."""
    topology, job, plan = case
    axis = data.draw(st.sampled_from(axes_with_members(job)))
    with patch.object(module, "MOST_GPUS", 0), patch.object(module, "MOST_TILES", most):
        root = parse(placement_map(plan, axis))
    cells = of_class(root, "cell")
    counts = {
        tier: len(set(names))
        for tier, names in {"node": plan.nodes, **plan.domains}.items()
    }
    level = next(t for t in counts if f"a cell is a {t}" in str(texts(root)))
    assert len(cells) == counts[level]
    assert sum(int(cell.get("data-ranks", 0)) for cell in cells) == plan.world_size
    names = plan.nodes if level == "node" else plan.domains[level]
    away = leaving(topology, job, plan, axis)
    for cell in cells:
        name = (
            hover(cell).partition(":")[0].rpartition("/")[2].removeprefix(f"{level} ")
        )
        inside = {
            r for r in range(plan.world_size) if names[plan.node_of_rank[r]] == name
        }
        assert int(cell.get("data-ranks", 0)) == len(inside)
        here = sum(bool(inside & set(group)) for group in away)
        assert int(cell.get("data-leaving", -1)) == here
    widths = [stripes(cell) for cell in cells]
    assert max(widths) - min(widths) <= 0.2


def stripes(cell):
    """Width of a tile's stripes together."""
    bars = [e for e in cell.findall(f"{SVG}rect") if e.get("fill") != "none"]
    return sum(float(bar.get("width", 0)) for bar in bars)


def texts(root):
    return [e.text or "" for e in root.iter(f"{SVG}text")]


def test_ambiguous_zoom():
    """A name that several domains have is refused with ways to say which is meant."""
    plan = tiny_plan()
    alike = replace(plan, domains={**plan.domains, "rack": ("r", "r") * 4})
    with pytest.raises(InputError, match="2 domains are called") as error:
        placement_map(alike, zoom="r")
    assert "b0/r" in str(error.value)
    cells = of_class(parse(placement_map(alike, zoom="b1/r")), "cell")
    assert len(cells) == 8


def test_a_plan_without_axes():
    """It has no colours, and is refused."""
    plan = tiny_plan()
    bare = replace(plan, job={k: v for k, v in plan.job.items() if k != "parallelism"})
    with pytest.raises(InputError, match="sizes of its axes"):
        placement_map(bare)


@pytest.mark.parametrize(
    ("racks", "level"), [(14, "GPU"), (114, "rack"), (600, "block")]
)
def test_level_of_detail(racks, level):
    """About a thousand GPUs are shown one by one, more by rack, and then by block."""
    nodes = [(f"b{i // 16:02d}", [4] * 18) for i in range(racks)]
    topology = machine(nodes)
    job = Job(
        "job", Parallelism(tp=4, dp=racks * 18, order=("tp", "cp", "ep", "pp", "dp"))
    )
    ranks = np.arange(racks * 72)
    picture = placement_map(build_plan(topology, job, Placement(ranks)))
    root = parse(picture)
    assert any(f"a cell is a {level}" in text for text in texts(root))
    width = float(root.get("width", 0))
    assert width <= 1600
    assert len(picture) < 500_000
