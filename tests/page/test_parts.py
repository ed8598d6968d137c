"""Parts of a report: colours of tiers, columns, names, and what to do with a plan."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from placer.api.place import place
from placer.api.report import report_html
from placer.base.units import format_beside, format_bytes_beside
from placer.draw import palette
from placer.draw.grouping import grouping
from placer.draw.heat_map import traffic_map
from placer.draw.machine_view import machine_view
from placer.draw.placement_map import placement_map
from placer.job.started import Started
from placer.placement.inputs import Inputs
from placer.report.next_text import launch_commands
from placer.report.page.maps import maps_of, modes
from placer.report.page.side import Side
from placer.testing import job
from placer.topology.read import read_topology
from tests.draw.pictures import of_class, parse
from tests.page.plans import inputs, plan_on, small_job, two_plans

DEEP = small_job(tp=2, pp=2, dp=16)


def body(page):
    return page.partition("<noscript>")[0]


def said(page):
    """The words of a page, one space apart."""
    text = " ".join(re.sub("<[^>]*>", " ", body(page)).replace("&#39;", "'").split())
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_free_nodes_are_drawn_beside_ranks():
    """Of a machine that is known, free nodes in domains with ranks are shown."""
    topology = read_topology("rack:3 node:4 gpu:8")
    small = small_job(tp=2, pp=2, dp=10)
    plan = plan_on(topology, small, np.arange(40))
    maps = maps_of([Side("", plan, Inputs(topology, small))])
    assert (maps.gpus.tolist(), maps.left_out) == ([8] * 8, 4)
    assert maps.seats(maps.view).tolist() == list(range(40))
    alone = maps_of([Side("", plan, None)])
    assert (len(alone.view.names[0]), alone.left_out) == (5, 0)


def test_a_replica_has_one_colour_everywhere():
    """Cells of the page have the colours of the map that `placer.draw` makes."""
    plan = two_plans()[1]
    view = machine_view(plan)
    (mode,) = (one for one in modes([view], ["tp", "pp", "dp"]) if one["axis"] == "dp")
    value = grouping(view, "dp", np.ones(48, dtype=bool), 1).value_of_rank
    for cell in of_class(parse(placement_map(plan, "dp")), "cell"):
        shade = mode["shades"][value[int(cell.get("data-rank", -1))]]
        assert mode["palette"][int(shade, 36)] == cell.get("fill")


@pytest.mark.parametrize(
    "machine", ["pod:2 rack:2 node:2 gpu:8", "hall:2 pod:1 rack:2 node:2 gpu:8"]
)
def test_each_tier_has_one_colour_everywhere(machine):
    """Bars, legends, maps and the table of traffic give a tier the same, its own."""
    plan = plan_on(read_topology(machine), DEEP, np.arange(64))
    tiers = plan.topology["tiers"]
    colours = palette.of_tiers(len(tiers), plan.topology["scale_up"])
    assert len(set(colours)) == len(tiers)
    page = report_html(plan, None)
    assert tuple(re.findall(r"\.t\d+\{background:[^#]*(#[0-9a-f]{6})", page)) == colours
    legend = re.findall(r'<i class="sw (t\d+)"></i>(\w+)', page)
    assert legend == [(f"t{t}", tier) for t, tier in enumerate(tiers)]
    assert all(f'"{t}":"{c}"' in page for t, c in zip(tiers, colours, strict=True))
    shown = [e.get("fill") for e in of_class(parse(traffic_map(plan)), "tier")]
    assert tuple(shown) == colours


@pytest.mark.parametrize(
    ("launcher", "order", "other"),
    [
        ("torchrun-c10d", "sorted-hosts", "given-order"),
        ("verl", "sorted-hosts", "given-order"),
        ("torchrun-static", "given-order", "sorted-hosts"),
        ("", "given-order", "sorted-hosts"),
    ],
)
def test_a_plan_stands_beside_the_order_in_use(launcher, order, other):
    """That of its script's launcher, by its name, as the verdict of the plan has it."""
    started = {"name": launcher, "source": "a.sh", "line": 1} if launcher else {}
    deep = replace(DEEP, started=Started(**started) if started else None)
    hosts = ",".join(f"r{k % 2 + 1}-n{k // 2 + 1}" for k in range(8))
    plan = place(read_topology("rack:2 node:4 gpu:8"), deep, hosts=hosts).plan
    name = launcher or "given-order"
    assert plan.verdict["against"] == name
    page = report_html(plan)
    assert f"{name} (hosts" in page.partition("</header>")[0]
    assert report_html(plan, order, names=(name, "")) == page
    assert report_html(plan, other, names=(name, "")) != page


def test_the_foot_tells_how_to_apply_the_plan():
    """It has the commands that the text of a search has, not what nobody types."""
    plan = two_plans()[1]
    page = body(report_html(plan, None, path="my plan.json"))
    assert "How do I apply this?" in page
    commands = launch_commands(plan, "my plan.json")
    assert commands[0][:2] == ["emit", "my plan.json"]
    for words in commands:
        assert words[0] == "emit"
        assert f"placer emit {'&#39;my plan.json&#39;' if len(words) > 2 else ''}" in (
            page
        )
    digest = str(plan.topology["sha256"])
    assert f'title="sha256 {digest}"' in page
    assert page.count(digest) == 1
    assert "emit plan.json" not in body(report_html(plan, None, path=""))


@pytest.mark.parametrize(
    ("shown_beside", "value", "largest", "shown"),
    [
        (format_beside, 6.551, 6.551, "6,551 ms"),
        (format_beside, 0.03915, 6.551, "39.15 ms"),
        (format_beside, 1e-7, 1.0, "<0.001 ms"),
        (format_beside, 9.99951, 9.99951, "10 s"),
        (format_bytes_beside, 98.96e12, 1.848e15, "98.96 TB"),
        (format_bytes_beside, 29.09e15, 29.09e15, "29.09 PB"),
        (format_bytes_beside, 7.0, 4e12, "<0.001 GB"),
        (format_bytes_beside, 7.0, 7.0, "7 B"),
    ],
)
def test_a_column_has_one_unit(shown_beside, value, largest, shown):
    """The unit is that of the largest, and what is not nothing does not look so."""
    assert shown_beside(value, largest) == shown


def test_a_host_that_is_in_another_rack_now_is_drawn_once():
    """Each host is on both maps once, in the rack that the last plan has it in."""
    plan = plan_on(*inputs(), np.arange(48))
    racks = plan.domains["rack"]
    moved = replace(plan, domains={**plan.domains, "rack": (racks[-1], *racks[1:])})
    maps = maps_of([Side("", moved, None), Side("", plan, None)])
    assert sorted(maps.view.names[0]) == sorted(plan.nodes)
    assert maps.gpus.tolist() == [4] * 12
    for view in maps.views:
        assert sorted(maps.seats(view).tolist()) == list(range(48))
    around = maps.view.domain_of_node[1][maps.view.names[0].index(plan.nodes[0])]
    assert maps.view.names[1][around] == racks[0]


WORSE = (
    "Costs 270 us a step",
    "tp 2 \N{MULTIPLICATION SIGN} cp 2 \N{MULTIPLICATION SIGN} pp 2",
    "A step takes 48.3 ms instead of 48.03 ms",
    "3 of 24 tp groups leave one node",
    "tp costs 260.7 us",
    "Before: before 24 of 24 pipelines leave their rack",
    "After: the plan 3 of 24 tp groups leave their node",
    "carries more now: 7.994 us of each step, 2.435 us before",
    "pipeline ends 260.7 us later",
    "GPU hours lost a day 7 of 1,152",
    "tp groups inside one node 24 21 of 24",
    "+271.7 us a step",
    "21 of 24 tp groups stay inside one node; before, 24 did",
)
BETTER = (
    "Saves 270 us a step",
    "3 of 24 tp groups come back into one node",
    "tp saves 260.7 us",
    "carries less now",
    "pipeline ends 260.7 us sooner",
    "GPU hours saved a day 6 of 1,152",
    "\N{MINUS SIGN}271.7 us a step",
)
ALONE = (
    "3 of 24 tp groups, 15 of 24 cp groups, 24 of 24 pipelines reach further than",
    "Longest wait: tp, 341.4 us of each step",
    "is in use for 7.994 us of each step",
    "pipeline takes 48.23 ms",
    "Step time 48.3 ms predicted",
    "tp groups inside one node 21 of 24",
    "scored, not searched: nothing is proved of it",
)
SAME = (
    "As fast as before",
    "A step takes 48.3 ms.",
    "24 of 24 pipelines reach further than",
    "No part of the step changes",
    "Step time 48.3 ms 48.3 ms no change",
    "is in use for 7.994 us of each step",
    "pipeline takes 48.23 ms",
)


@pytest.mark.parametrize(
    ("new", "old", "told"),
    [(1, 0, WORSE), (0, 1, BETTER), (1, 1, SAME), (1, None, ALONE)],
)
def test_a_page_says_which_way_each_thing_went(new, old, told):
    """Cost, groups, waits, uplinks, pipelines and hours: lost, saved or as they are."""
    plans = two_plans()
    page = report_html(plans[new], None if old is None else plans[old])
    text = said(page)
    assert [words for words in told if words not in text] == []
    assert "lower bound" not in text.lower()
    changes = re.findall(r'"d (up|down) l(\d+) w(\d+)"', page)
    assert bool(changes) == (old not in (None, new))
    for way, left, width in changes:
        assert int(left) + (way == "down") * int(width) == 500


def test_parts_of_the_step_are_those_of_the_score():
    """Each part that takes time, and the step, in one unit before and after."""
    old, new, _ = two_plans()
    text = said(report_html(new, old))
    scores = old.score, new.score
    rows = {"compute": [s["compute_s"] for s in scores]}
    rows |= {"bubble": [s["bubble_s"] for s in scores]}
    for axis in new.score["exposed_s"]:
        rows[f"{axis} exposed"] = [s["exposed_s"][axis] for s in scores]
    rows["step"] = [s["step_time_s"] for s in scores]
    for name, times in rows.items():
        shown = " ".join(format_beside(time, max(rows["step"])) for time in times)
        assert (f"{name} {shown}" in text) == any(times), name


PROVED = (
    "25.45 s a step, proved optimal",
    "Gap to the lower bound 0 % proved optimal",
    "Value 25.45 s, lower bound 25.45 s: no placement on these nodes can be faster",
    "all 4 rack uplinks alike up and down, into the cluster 397 ms",
)
OPEN = (
    "Gap to the lower bound 1.782 % at most",
    "no placement on these nodes can be more than 1.782 % faster",
)
MOVED = (
    "tp exposed 9.289 s 2.813 s \N{MINUS SIGN}6,476 ms",
    "r2 up and down, into the cluster 887.3 ms",
    "1 of 32 tp groups comes back into one rack",
)


def test_a_page_says_how_far_a_plan_is_proved():
    """Optimal, within a gap, and beside an order how each wait and uplink was."""
    machine = "rack:4 node:18 gpu:4"
    plan = place(machine, "llama3.1-405b-256", exclude="r1-n05,r2-n11").plan
    gap = {"lower_bound": 25.0, "gap": 1 - 25 / plan.bound["value"]}
    loose = replace(plan, bound={**plan.bound, **gap, "status": "feasible"})
    for told, one, beside in (
        (PROVED, plan, None),
        (OPEN, loose, None),
        (MOVED, plan, "megatron-default"),
    ):
        text = said(report_html(one, beside))
        assert [words for words in told if words not in text] == []
        assert ("proved optimal" in text) == (one is plan)


def test_a_map_says_whether_groups_are_where_they_belong():
    """They are, are not, or cannot be: that of an optimal plan, and of one as fast."""
    old, new, _ = two_plans()
    proof = {"lower_bound": 1.0, "gap": 0.0, "status": "optimal"}
    bound = {"objective": "time", "value": 1.0, **proof}
    best = replace(new, bound=bound)
    flat = plan_on(inputs()[0], small_job(tp=2, dp=24), np.arange(48))
    groups = "3 of 24 tp groups leave their node"
    open_, proved = ("bad", groups), ("", f"{groups}, and no placement is better")
    for plan, beside, told in (
        (new, old, [("bad", "24 of 24 pipelines leave their rack"), open_]),
        (best, old, [("bad", "16 of 24 pipelines leave their block"), proved]),
        (best, new, [proved, proved]),
        (flat, None, [("ok", "every tp group is where it belongs")]),
    ):
        page = report_html(plan, beside)
        assert re.findall(r'<figcaption>.*?<span class="(\w*)">([^<]*)', page) == told


def read_by_scripts(page):
    """The data of a page."""
    return json.loads(page.partition('id="data">')[2].partition("</script>")[0])


def test_what_scripts_read_and_bars_show_is_of_the_plan():
    """Whole names, the busiest uplinks of nodes, and the lengths of a step's parts.

    The page of one placement has one map and no column of changes.
    """
    plan = two_plans()[1]
    page = report_html(plan, None)
    assert page.count('<svg id="map-') == 1
    assert "before" not in said(page).lower()
    assert re.findall(r"<th[^>]*>([^<]*)</th></tr></thead>", page)[-1] == "time"
    assert 'class="n dv"' not in page
    data = read_by_scripts(page)
    machine, (side,) = data["machine"], data["sides"]
    full, short = machine["full"], machine["names"]
    names = [a or b for a, b in zip(full, short, strict=True)]
    assert [sorted(one) for one in names[:2]] == [
        sorted(plan.nodes),
        sorted({*plan.domains["rack"]}),
    ]
    assert all(a != b for a, b in zip(full, short, strict=True))
    assert (data["level"], data["uplinks"], side["slowest"]) == (1, "node", 0)
    assert data["homes"] == [["tp", 0], ["cp", 0], ["pp", 1]]
    neighbours = [["tp", 2, 1, "tp"], ["cp", 2, 2, "cp"], ["pp", 2, 24, "stage"]]
    assert side["axes"] == [*neighbours, ["dp", 6, 4, "replica"]]
    groups = side["groups"]
    over = {axis: [axis] for axis in ("tp", "cp", "pp")} | {"dp": ["dp", "cp"]}
    assert {axis: own["over"] for axis, own in groups.items()} == over
    assert (len(groups["pp"]["seconds"]), groups["pp"]["of_group"]) == (1, "")
    number = np.frombuffer(base64.b64decode(groups["tp"]["of_group"]), "<i4")
    assert np.bincount(number).tolist() == [21, 3]  # those that leave their node
    links = plan.score["hottest_links"]
    busy = dict(zip(names[0], side["busy"], strict=True))
    assert links[0]["busy_s"] == pytest.approx(max(busy.values()), rel=1e-5)
    step = plan.score["step_time_s"]
    for part in ("compute", "bubble"):
        (width,) = re.findall(rf"p-{part} l\d+ w(\d+)", page)
        assert int(width) == round(1000 * plan.score[f"{part}_s"] / step)
    experts = job(tp=2, ep=4, etp=1, dp=8, weights={"tp": 4, "dp": 1})
    plan = plan_on(read_topology("rack:2 node:2 gpu:4"), experts, np.arange(16))
    data = read_by_scripts(report_html(plan, None))
    assert data["homes"] == [["tp", 0], ["ep", 0]]
    (side,) = data["sides"]
    neighbours = [["tp", 2, 1, "tp"], ["ep", 4, 1, "ep"], ["dp", 8, 2, "replica"]]
    assert side["axes"] == [*neighbours, ["edp", 4, 4, "edp"]]
    own = {"name": "own", "collective": "all_reduce", "bytes": "1MB", "ranks": "all"}
    plan = plan_on(inputs()[0], small_job(tp=2, dp=24, groups=[own]), np.arange(48))
    (side,) = read_by_scripts(report_html(plan, None))["sides"]
    assert {*side["groups"]} == {"tp", "dp"}
