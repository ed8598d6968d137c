"""The page of a difference, read and used in headless Chromium."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from placer.api.score import score
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job, Model
from placer.job.read import read_job
from placer.page.diff_page import diff_page
from placer.placement.baselines import baseline
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.report.diff import PlanDiff, diff
from placer.topology.model import Topology
from placer.topology.read import read_topology
from tests.page.browser import Browser, chromium
from tests.plan_cases import machine, tiny_plan
from tests.report.test_diff import bare

MODEL = Model("tiny", layers=4, hidden=64, ffn=128, heads=4, kv_heads=4, vocab=512)
HOSTILE = (
    '</script><script>throw 1</script><img src="http://x.invalid/" onerror=alert(1)>'
)
AXES = ("dp", "pp", "cp", "tp")


def inputs() -> tuple[Topology, Job]:
    """Eight racks in two blocks, 64 GPUs; tp 2, cp 2, pp 2, dp 6 on 48 of them."""
    topology = machine([(f"b{i // 4}", [2, 2, 4]) for i in range(8)])
    axes = Parallelism(tp=2, cp=2, pp=2, dp=6, etp=2)
    job = Job("small", axes, MODEL, sequence=128, micro_batches=4, sha256="of small")
    return topology, replace(job, compute=Compute(micro_batch_time=0.01))


def plan_on(topology: Topology, job: Job, placement: Placement) -> Plan:
    return build_plan(topology, job, placement, score=score(topology, job, placement))


def two_plans() -> tuple[Plan, Plan, Job]:
    topology, job = inputs()
    old = plan_on(topology, job, Placement(np.arange(48)))
    shuffled = np.random.default_rng(3).permutation(topology.num_gpus)[:48]
    gpus = np.concatenate([np.arange(16), np.setdiff1d(shuffled, np.arange(16))])
    rest = np.setdiff1d(np.arange(topology.num_gpus), gpus)
    new = plan_on(topology, job, Placement(np.concatenate([gpus, rest])[:48]))
    return old, new, job


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[PlanDiff, Path]:
    old, new, job = two_plans()
    found = diff(old, new, job)
    path = tmp_path_factory.mktemp("page") / "diff.html"
    path.write_text(diff_page(found, old, new, ("a.json", "b.json")))
    return found, path


def opened(browser: Browser, path: Path) -> Browser:
    """The page, freshly opened and without a word on the console or a request."""
    browser.open(path)
    assert browser.requests() == [path.as_uri()]
    assert browser.log("browser") == []
    return browser


def show_all(browser: Browser) -> None:
    browser.run(
        """for (const button of document.querySelectorAll(".table button"))
             while (!button.hidden) button.click();"""
    )


def numbers(browser: Browser) -> list[dict]:
    """Every number: where it is from, its exact value, its text and its unit."""
    return browser.run(
        """return [...document.querySelectorAll("data")].map((e) => ({
             path: e.dataset.path, value: e.value, text: e.textContent,
             format: e.dataset.format}));"""
    )


def at(data: object, pointer: str) -> object:
    """The value at a JSON pointer (RFC 6901)."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "": 1, "B": 1}
UNITS |= {f"{prefix}B": 1000**i for i, prefix in enumerate("kMGTP", 1)}


def meaning(text: str) -> float:
    found = re.fullmatch(r"([-0-9.,]+) ?([a-zA-Z]*)", text)
    assert found is not None, text
    return float(found[1].replace(",", "")) * UNITS[found[2]]


def leaves(data: object, path: str) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, f"{path}/{key}")
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaves(value, f"{path}/{index}")
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield path


def test_every_number_is_that_of_the_json(
    browser: Browser, page: tuple[PlanDiff, Path]
) -> None:
    """Each number shown is the one at its place in the JSON; none is left out."""
    found, path = page
    data = json.loads(json.dumps(found.to_dict()))
    opened(browser, path)
    assert json.loads(browser.run("return JSON.stringify(data.diff);")) == data
    show_all(browser)
    shown = numbers(browser)
    for axis in data["folded_by_axis"]:
        browser.run(
            """const choice = document.getElementById("fold-axis");
               choice.value = arguments[0];
               choice.dispatchEvent(new Event("change"));""",
            axis,
        )
        show_all(browser)
        shown += numbers(browser)
    for number in shown:
        value = at(data, number["path"])
        assert float(number["value"]) == value
        assert meaning(number["text"]) == pytest.approx(value, rel=6e-4, abs=1e-12)
    wanted = {
        place
        for key in (
            "ranks_compared",
            "ranks_moved",
            "folded",
            "folded_by_axis",
            "groups",
            "cost",
            "hottest_links",
            "critical_path",
            "restart",
            "moved",
        )
        for place in leaves(data[key], f"/{key}")
    }
    aside = re.compile(
        r"/critical_path/\d+/(old|new)/(replica|crossing_hops/.*)"  # not in the table
        r"|/groups/\w+/tiers/.*"  # groups/*/domains says more
        r"|/moved/\d+/new_rank"  # equal to rank here
        r"|/restart/ranks_(started|stopped)"  # nothing starts or stops here
    )
    wanted = {place for place in wanted if not aside.fullmatch(place)}
    assert wanted <= {number["path"] for number in shown}
    assert not data["same"]
    assert len(data["moved"]) > 20


def folded(found: PlanDiff, ranks: set[int], axis: str, at: np.ndarray) -> set[tuple]:
    """Rows of the folded moves that hold one of the ranks, by a plain loop."""
    old, new, _ = two_plans()
    moved = {move.rank for move in found.moved}
    racks = [(old, old.domains["rack"]), (new, new.domains["rack"])]
    keys = {
        (int(at[rank]), *(names[plan.node_of_rank[rank]] for plan, names in racks))
        for rank in ranks & moved
    }
    return {
        (str(fold.index), str(fold.nodes), fold.old, fold.new, str(fold.ranks))
        for fold in found.folds[axis]
        if (fold.index, fold.old, fold.new) in keys
    }


def shown_folds(browser: Browser, axis: str) -> set[tuple]:
    """Rows of the folded moves on the page."""
    browser.run(
        """const choice = document.getElementById("fold-axis");
           choice.value = arguments[0];
           choice.dispatchEvent(new Event("change"));""",
        axis,
    )
    show_all(browser)
    rows = browser.run(
        """return [...document.querySelectorAll("#folds tbody tr")].map((row) =>
             [...row.children].map((cell) => cell.textContent));"""
    )
    return {tuple(row) for row in rows}


def shown_ranks(browser: Browser, field: str, text: str) -> tuple[set[int], str]:
    """Ranks in the table of moves under one filter, and what is said of it."""
    browser.run(
        """document.getElementById("filters").reset();
           const field = document.getElementById(arguments[0]);
           field.value = arguments[1];
           field.dispatchEvent(new Event("input"));""",
        field,
        text,
    )
    show_all(browser)
    ranks = browser.run(
        """return [...document.querySelectorAll("#moved tbody tr")]
             .map((row) => Number(row.querySelector("data").value));"""
    )
    said = browser.run('return document.getElementById("count").textContent;')
    return set(ranks), said


def test_filters(browser: Browser, page: tuple[PlanDiff, Path]) -> None:
    """Rank, host and group filters leave the ranks that a plain loop leaves."""
    found, path = page
    old, new, job = two_plans()
    opened(browser, path)
    moved = {move.rank for move in found.moved}
    at_axis = job.parallelism.coordinates

    def racks(rank: int) -> set[str]:
        return {p.domains["rack"][p.node_of_rank[rank]] for p in (old, new)}

    def seats(rank: int) -> set[str]:
        return {f"{p.host_of_rank[rank]}:{p.gpu_of_rank[rank]}" for p in (old, new)}

    a_move = found.moved[-1]
    tp_group = next(g for g in job.parallelism.ranks_of_group["tp"] if 30 in g)
    cases = {
        ("by-rank", "20, 30-40"): {20, *range(30, 41)},
        ("by-host", "R2"): {r for r in range(48) if "r2" in racks(r)},
        ("by-host", a_move.new): {r for r in range(48) if a_move.new in seats(r)},
        ("by-group", "dp=1,3-4 pp=1"): {
            r
            for r in range(48)
            if at_axis["dp"][r] in (1, 3, 4) and at_axis["pp"][r] == 1
        },
        ("by-group", "tp@30"): set(tp_group.tolist()),
    }
    for (field, text), ranks in cases.items():
        shown, said = shown_ranks(browser, field, text)
        assert shown == ranks & moved, text
        assert said == f"{len(ranks)} ranks, {len(shown)} of them move"
        for axis in ("dp", "pp"):
            rows = folded(found, ranks, axis, at_axis[axis])
            assert shown_folds(browser, axis) == rows, (text, axis)
    for field, text in (("by-rank", "x"), ("by-group", "dp"), ("by-group", "zz=1")):
        shown, said = shown_ranks(browser, field, text)
        assert (shown, said[:8]) == (set(), "0 ranks,")
        invalid = f'return document.getElementById("{field}").ariaInvalid;'
        assert browser.run(invalid) == "true"
    assert shown_ranks(browser, "by-rank", "") == (moved, "")


def test_pictures_and_hover_text(browser: Browser, page: tuple[PlanDiff, Path]) -> None:
    """The cell under the pointer, and under the keyboard, is the rank of that GPU."""
    _, path = page
    old, new, job = two_plans()
    opened(browser, path)
    at_axis = job.parallelism.coordinates
    for rank in (0, 20, 47):
        for side, plan in (("old", old), ("new", new)):
            said = browser.run(
                """const [side, host, gpu] = arguments;
                   const [x, y] = corner(plan, machine.nodes.indexOf(host), gpu);
                   const canvas = canvases[side];
                   const box = canvas.getBoundingClientRect();
                   canvas.dispatchEvent(new PointerEvent("pointermove",
                     {clientX: box.left + x + 1, clientY: box.top + y + 1}));
                   return document.getElementById("tip").textContent;""",
                side,
                plan.host_of_rank[rank],
                int(plan.gpu_of_rank[rank]),
            )
            where = " \u00b7 ".join(f"{a} {at_axis[a][rank]}" for a in AXES)
            seats = [
                f"{p.host_of_rank[rank]}:{p.gpu_of_rank[rank]}" for p in (old, new)
            ]
            there = (
                " \u2192 ".join(seats)
                if seats[0] != seats[1]
                else f"stays on {seats[0]}"
            )
            assert said == f"rank {rank}, {where}: {there}"
    told = browser.run(
        """const press = (key) => canvases.old.dispatchEvent(
             new KeyboardEvent("keydown", {key, cancelable: true}));
           press("Escape");
           for (const key of ["ArrowDown", "ArrowRight", "ArrowDown"]) press(key);
           const told = document.getElementById("told").textContent;
           press("Enter");
           return [told, document.getElementById("by-rank").value];"""
    )
    # n000:0, n000:1, n001:1, with two GPUs on each node.
    assert told[0].startswith("rank 3, ")
    assert told[1] == "3"


def colour_counts(browser: Browser, side: str) -> dict[str, int]:
    """How many cells have the colour of each kind, read from the middle of each."""
    return browser.run(
        """const side = arguments[0];
           const {width, height} = canvases[side];
           const pixels = canvases[side].getContext("2d")
             .getImageData(0, 0, width, height).data;
           const colours = ["stays", "inside", "away", "free"];
           const found = Object.fromEntries(colours.map((name) => [name, 0]));
           machine.nodes.forEach((_, node) => {
             for (let gpu = 0; gpu < machine.gpus[node]; gpu++) {
               const [x, y] = corner(plan, node, gpu);
               const place = 4 * ((y + 1) * width + x + 1);  // a pixel is a pixel here
               const hex = "#" + [...pixels.slice(place, place + 3)]
                 .map((v) => v.toString(16).padStart(2, "0")).join("");
               const name = colours.find((one) => theme(one) === hex);
               if (name) found[name] += 1;
             }
           });
           return found;""",
        side,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_have_the_colour_of_their_move(
    browser: Browser, page: tuple[PlanDiff, Path], scheme: str
) -> None:
    """Both pictures show as many ranks that stay, move and go away as the plans say."""
    found, path = page
    old, new, _ = two_plans()
    browser.prefer(scheme)
    opened(browser, path)
    rack = {}
    for plan in (old, new):
        rack |= dict(zip(plan.nodes, plan.domains["rack"], strict=True))
    away = sum(
        rack[m.old.split(":")[0]] != rack[m.new.split(":")[0]] for m in found.moved
    )
    inside = len(found.moved) - away
    used = set(old.nodes) | set(new.nodes)
    seats = {
        node: max(
            int(gpu) + 1
            for plan in (old, new)
            for host, gpu in zip(plan.host_of_rank, plan.gpu_of_rank, strict=True)
            if host == node
        )
        for node in used
    }
    wanted = {
        "stays": 48 - len(found.moved),
        "inside": inside,
        "away": away,
        "free": sum(seats.values()) - 48,
    }
    assert colour_counts(browser, "old") == colour_counts(browser, "new") == wanted
    assert min(wanted.values()) > 0


def test_a_plan_with_itself(browser: Browser, tmp_path: Path) -> None:
    """The page of no difference says so."""
    plan = tiny_plan()
    path = tmp_path / "same.html"
    path.write_text(diff_page(diff(plan, plan), plan, plan))
    opened(browser, path)
    said = browser.run('return document.getElementById("verdict").textContent;')
    assert said == "No difference: 16 ranks on the same GPUs."


def test_bare_plans(browser: Browser, tmp_path: Path) -> None:
    """Plans that record neither axes nor domains nor a score have a page too."""
    old = bare(tiny_plan())
    new = replace(old, gpu_of_rank=1 - old.gpu_of_rank)
    path = tmp_path / "bare.html"
    path.write_text(diff_page(diff(old, new), old, new))
    opened(browser, path)
    assert shown_ranks(browser, "by-host", "n003") == (
        {6, 7},
        "2 ranks, 2 of them move",
    )


def test_groups_of_experts(browser: Browser, tmp_path: Path) -> None:
    """The groups of expert axes can be asked for by one of their ranks."""
    axes = Parallelism(tp=2, pp=2, dp=4, ep=4, etp=1)
    topology, _ = inputs()
    job = Job("moe", axes, sha256="of moe")
    old = build_plan(topology, job, Placement(np.arange(16)))
    new = build_plan(topology, job, Placement(np.arange(16) + 8))
    path = tmp_path / "experts.html"
    path.write_text(diff_page(diff(old, new), old, new))
    opened(browser, path)
    for axis in ("ep", "edp", "tp"):
        (members,) = (g for g in axes.ranks_of_group[axis].tolist() if 5 in g)
        ranks, _ = shown_ranks(browser, "by-group", f"{axis}@5")
        assert ranks == set(members)
    at = axes.coordinates["ep"]
    ranks, _ = shown_ranks(browser, "by-group", "ep=2")
    assert ranks == set(np.flatnonzero(at == 2).tolist())


def test_names_cannot_break_out(browser: Browser, tmp_path: Path) -> None:
    """Names with markup are shown as they are, and do nothing."""
    plan = tiny_plan()
    evil = {**plan.topology, "name": HOSTILE}
    racks = tuple(f"{HOSTILE}{name}" for name in plan.domains["rack"])
    old = replace(plan, topology=evil, domains={**plan.domains, "rack": racks})
    at_end = np.roll(np.arange(16), 2)
    new = replace(
        old,
        node_of_rank=old.node_of_rank[at_end],
        gpu_of_rank=old.gpu_of_rank[at_end],
    )
    path = tmp_path / "evil.html"
    path.write_text(diff_page(diff(old, new), old, new, (HOSTILE, "{data}")))
    opened(browser, path)
    assert (
        browser.run("return document.title") == f"Placement diff: {HOSTILE} to {{data}}"
    )
    assert HOSTILE in browser.run(
        'return document.getElementById("inputs").textContent'
    )
    assert browser.run('return document.querySelectorAll("img").length') == 0
    assert browser.run('return document.querySelectorAll("script").length') == 2


def test_ranks_that_stop_and_start(browser: Browser, tmp_path: Path) -> None:
    """With fewer replicas, the ranks that stop are counted, and back, that start."""
    topology, job = inputs()
    fewer = replace(job, parallelism=replace(job.parallelism, dp=4))
    old = plan_on(topology, job, Placement(np.arange(48)))
    new = plan_on(topology, fewer, Placement(np.arange(32)))
    for name, pair, word in (("a", (old, new), "stops"), ("b", (new, old), "starts")):
        path = tmp_path / f"{name}.html"
        path.write_text(diff_page(diff(*pair, job), *pair))
        opened(browser, path)
        legend = browser.run('return document.getElementById("legend").innerText')
        assert f"{word}: 16" in legend
        ranks, said = shown_ranks(browser, "by-group", "dp=4-5")
        assert (ranks, said) == (set(), "16 ranks, 0 of them move")


def test_8192_gpus(browser: Browser, tmp_path: Path) -> None:
    """The page for 8,192 GPUs has at most 2 MB, even if every rank goes elsewhere."""
    topology = read_topology("azure-gb200-mlperf-v6")
    job = read_job("llama3.1-405b-mlperf-v6")
    old = plan_on(topology, job, baseline("sorted-hosts", topology, job))
    anywhere = np.random.default_rng(0).permutation(topology.num_gpus)[:8192]
    new = plan_on(topology, job, Placement(anywhere))
    path = tmp_path / "large.html"
    path.write_text(diff_page(diff(old, new, job), old, new))
    assert path.stat().st_size <= 2_000_000
    opened(browser, path)
    verdict = browser.run('return document.getElementById("verdict").textContent;')
    assert " slower than before: " in verdict
    assert verdict.endswith("of 8,192 ranks move.")
