"""The report page, read and used in headless Chromium."""

from dataclasses import replace

import numpy as np
import pytest

from placer.api.place import place
from placer.api.report import report_html
from placer.report.verdict import sentences
from placer.testing.strategies import tiny_plan
from tests.page.plans import bare, inputs, plan_on, two_plans
from tests.texts import FOLDER

HOSTILE = (
    '</script><script>throw 1</script><img src="http://x.invalid/" onerror=alert(1)>'
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of two plans."""
    old, new, _ = two_plans()
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_html(new, old, names=("a.json", "b.json")))
    return path


@pytest.fixture
def shown(browser, tmp_path):
    """The browser reads a report of these plans."""

    def show(*plans, **options):
        path = tmp_path / "report.html"
        path.write_text(report_html(*plans, **options))
        browser.read(path)

    return show


def cells(browser, rows):
    return browser.run(
        """return [...document.querySelectorAll(arguments[0])].map((row) =>
             [...row.children].map((cell) => cell.innerText.trim()));""",
        rows,
    )


def colours(browser, side, mode):
    """Colour of the middle of every GPU of a map, by ``host:gpu``."""
    return browser.run(
        """const [s, key] = arguments;
           mode = MODES.find((one) => one.key === key);
           redrawNow();
           const found = {}, paths = [...layers[s].cells.children];
           for (let gpu = 0; gpu < numGpus; gpu++) {
             const [x, y] = gpuCorner(gpu).map((corner) => corner + 0.3 * pitch);
             const node = nodeOfGpu[gpu];
             const name = machine.names[0][node] + ":" + (gpu - firstGpu[node]);
             const path = paths.find((one) => one.isPointInFill({ x, y }));
             found[name] = rgb(path.getAttribute("fill"));
           }
           return found;""",
        side,
        mode,
    )


def rgb(browser, name):
    return browser.run("return rgb(css(arguments[0]));", name)


def test_a_narrow_page_breaks_no_name_and_parts_its_numbers(browser, page, shown):
    """Names of a role's axes stay on one line; numbers of a row are apart."""
    lines = """return [...document.querySelectorAll(arguments[0])].map((cell) => {
        if (arguments[1]) cell.textContent = arguments[1];
        const range = document.createRange();
        range.selectNodeContents(cell);
        return [...range.getClientRects()].map((line) => [line.left, line.right]);
    });"""
    browser.resize(390, 900)
    browser.read(page)
    numbers = browser.run(lines, ".steps tbody tr:last-child .n", "317.5 ms")
    work = FOLDER / "jobs/workload.yaml"
    shown(place("rack:2 node:4 gpu:4", work, effort=0).plan)
    names = browser.run(lines, ".axes b")
    browser.resize(1600, 1000)
    assert [len(name) for name in names] == [1] * 5
    (_, before), (after, then), (change, _) = (number[0] for number in numbers)
    assert min(after - before, change - then) > 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_cells_have_the_colour_of_their_move(browser, page, scheme):
    """GPUs whose rank stays, those whose rank moved and free ones differ."""
    old, new, _ = two_plans()
    browser.prefer(scheme)
    browser.read(page)
    kinds = {name: rgb(browser, name) for name in ("--calm", "--net", "--line")}
    seats = [
        [f"{h}:{g}" for h, g in zip(p.host_of_rank, p.gpu_of_rank, strict=True)]
        for p in (old, new)
    ]
    stays = {a for a, b in zip(*seats, strict=True) if a == b}
    assert 0 < len(stays) < 48
    for side in (0, 1):
        for seat, colour in colours(browser, side, "moves").items():
            is_used = seat in seats[side]
            kind = "--line" if not is_used else "--calm" if seat in stays else "--net"
            assert colour == kinds[kind], (side, seat)
    browser.prefer("light")


def test_crossing_groups_are_those_of_a_plain_loop(browser, page):
    """A rank strays as far as the widest of its groups beyond where that belongs."""
    old, new, job = two_plans()
    browser.read(page)
    homes = browser.run("return data.homes;")
    assert {axis for axis, _ in homes} == {"tp", "cp", "pp"}
    for side, plan in enumerate((old, new)):
        place = [
            [plan.host_of_rank[r], *(plan.domains[t][plan.node_of_rank[r]]
                                     for t in ("rack", "block")), ""]
            for r in range(48)
        ]  # fmt: skip
        wanted = [0] * 48
        for axis, home in homes:
            for ranks in job.parallelism.ranks_of_group[axis].tolist():
                level = next(
                    k for k in range(4) if len({place[r][k] for r in ranks}) == 1
                )
                for r in ranks:
                    if level > home:
                        wanted[r] = max(wanted[r], level)
        assert browser.run("return [...strays[arguments[0]]];", side) == wanted
        assert sum(map(bool, wanted)) > 0 or side == 0


def found_ranks(browser, text):
    """Ranks that a search finds, what it says, and whether the field is marked."""
    ranks, said, invalid = browser.run(
        """const field = document.getElementById("find");
           field.value = arguments[0];
           field.dispatchEvent(new Event("input"));
           return [search(arguments[0]), document.getElementById("told").innerText,
                   field.getAttribute("aria-invalid")];""",
        text,
    )
    return set(ranks), said, invalid


def test_search(browser, page):
    """A rank, a host, a rack or a group is found as a plain loop finds it."""
    _, new, job = two_plans()
    browser.read(page)
    at = job.parallelism.coordinates
    racks = [new.domains["rack"][node] for node in new.node_of_rank]
    host = new.host_of_rank[40]
    cases = {
        "dp=3": set(np.flatnonzero(at["dp"] == 3).tolist()),
        "pp 1": set(np.flatnonzero(at["pp"] == 1).tolist()),
        "R2": {r for r, rack in enumerate(racks) if "r2" in rack},
        "rank 17": {17},
        "rank=17": {17},
        "r17": {17},
        "Rank 017": {17},
        host: {r for r in range(48) if new.host_of_rank[r] == host},
    }
    for text, ranks in cases.items():
        found, said, invalid = found_ranks(browser, text)
        assert (found, invalid) == (ranks, "false"), text
        assert said.startswith(f"{len(ranks)} ranks found") or len(ranks) == 1
    assert found_ranks(browser, "17")[1].startswith("rank 17 ")
    for text in ("nowhere", "48", "dp=6", "rank 48", "r48"):
        found, said, invalid = found_ranks(browser, text)
        assert (found, invalid) == (set(), "true")
        assert said.startswith("Nothing is called so")
    several = "return arguments[0].map((noun) => plural(2, noun))"
    nouns = browser.run(several, ["leaf", "switch", "city", "tray", "blocks-2"])
    assert nouns == ["2 leaves", "2 switches", "2 cities", "2 trays", "2 blocks-2"]


def test_pointer_and_keys(browser, page):
    """The GPU under the pointer, and under the keys, is told with both its places."""
    old, new, job = two_plans()
    browser.read(page)
    for rank in (0, 20, 47):
        for side, plan in enumerate((old, new)):
            said = browser.run(
                """const [s, host, gpu] = arguments;
                   choose(-1, false);
                   const node = machine.names[0].indexOf(host);
                   const [x, y] = gpuCorner(firstGpu[node] + gpu);
                   const box = maps[s].getBoundingClientRect();
                   const at = (place, middle) =>
                     (place + pitch / 2 - middle) * scaleOf(maps[s]);
                   maps[s].dispatchEvent(new PointerEvent("pointermove",
                     {clientX: box.left + box.width / 2 + at(x, view.x),
                      clientY: box.top + box.height / 2 + at(y, view.y)}));
                   return document.getElementById("told").innerText;""",
                side,
                plan.host_of_rank[rank],
                int(plan.gpu_of_rank[rank]),
            )
            seats = [
                f"{p.host_of_rank[rank]}:{p.gpu_of_rank[rank]}" for p in (old, new)
            ]
            assert said.startswith(f"rank {rank} ")
            assert " \u2192 ".join(dict.fromkeys(seats)) in said
            for axis in ("tp", "pp", "dp"):
                assert f"{axis} {job.parallelism.coordinates[axis][rank]}" in said
    told = browser.run(
        """const press = (key) => maps[1].dispatchEvent(
             new KeyboardEvent("keydown", {key, cancelable: true}));
           press("Escape");
           const told = [document.getElementById("told").innerText];
           press("ArrowRight");
           const first = chosen;
           press("ArrowRight");
           told.push(first, chosen, document.getElementById("told").innerText);
           return told;"""
    )
    assert told[0].startswith("Point at a GPU")
    assert told[2] != told[1] >= 0
    assert told[3].startswith(f"rank {told[2]} ")


def test_the_address_keeps_what_is_seen(browser, page):
    """A link opens with the colours, the rank and the part of the map of its sender."""
    browser.read(page)
    kept = browser.run(
        """mode = MODES.find((one) => one.key === "stage");
           choose(20, true);
           moveView(3, worldWidth / 2, worldHeight / 2);
           remember();
           return location.hash;"""
    )
    seen = browser.run(
        """history.replaceState(null, "", "#"); recall(); choose(-1, false); showAll();
           history.replaceState(null, "", arguments[0]); recall(); refresh();
           return [mode.key, chosen, view.zoom];""",
        kept,
    )
    assert seen == ["stage", 20, pytest.approx(3, abs=0.01)]


def test_bare_plans(browser, shown):
    """Plans that record neither axes nor domains nor a score have a page too."""
    old = bare(tiny_plan())
    new = replace(old, gpu_of_rank=1 - old.gpu_of_rank)
    shown(new, old)
    assert found_ranks(browser, "n003")[0] == {6, 7}


def test_names_cannot_break_out(browser, shown):
    """Names with markup are shown as they are, and do nothing."""
    plan = tiny_plan()
    evil = {**plan.topology, "name": HOSTILE}
    racks = tuple(f"{HOSTILE}{name}" for name in plan.domains["rack"])
    old = replace(plan, topology=evil, domains={**plan.domains, "rack": racks})
    at_end = np.roll(np.arange(16), 2)
    new = replace(
        old, node_of_rank=old.node_of_rank[at_end], gpu_of_rank=old.gpu_of_rank[at_end]
    )
    shown(new, old, names=(HOSTILE, "{{DATA}}"))
    text = browser.run("return document.body.innerText")
    assert HOSTILE in text
    assert "{{DATA}}" in text
    assert browser.run('return document.querySelectorAll("img").length') == 0
    assert browser.run('return document.querySelectorAll("script").length') == 2


def test_ranks_that_stop(browser, shown):
    """Ranks of replicas that stop have no partner and a colour of their own."""
    topology, job = inputs()
    _, fewer = inputs(dp=4)
    old = plan_on(topology, job, np.arange(48))
    new = plan_on(topology, fewer, np.arange(32))
    shown(new, old)
    alone = browser.run("return [...sides[0].seats].map((_, r) => partner(r, 0, 1));")
    dp = job.parallelism.coordinates["dp"]
    assert [r for r in range(48) if alone[r] < 0] == np.flatnonzero(dp >= 4).tolist()
    only = rgb(browser, "--all")
    assert sum(c == only for c in colours(browser, 0, "moves").values()) == 16


def words(browser):
    """The headline of a page and what follows it."""
    return browser.run(
        "return ['h1', '.lede'].map((s) => document.querySelector(s).innerText)"
        ".join(' ')"
    ).replace("\N{NO-BREAK SPACE}", " ")


def spoken(plan):
    """The verdict of a plan in sentences."""
    said = sentences(plan, plan.verdict)
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in said)


def test_an_order_that_is_kept(browser, shown):
    """The page says so as the terminal does, has it once, and folds its map."""
    plan = place("dgx-h100-4x8", "quickstart").plan
    shown(plan)
    assert words(browser) == spoken(plan)
    assert browser.run("return maps.length") == 1
    assert "before" not in browser.run("return document.body.innerText").lower()
    assert not browser.run("return maps.at(-1).checkVisibility()")
    browser.run('$("fold").open = true')
    painted = (
        "return maps.at(-1).checkVisibility() && layers[0].cells.children.length > 0"
    )
    browser.wait_for("setTimeout(arguments[0], 300)")
    assert browser.run(painted)
    assert browser.log() == []
    shown(plan, "megatron-default")
    assert browser.run('return $("fold")') is None


def test_a_plan_to_move_to(browser, shown):
    """The page begins as the terminal, and tells what the decision rests on."""
    machine = "rack:4 node:18 gpu:4"
    plan = place(machine, "llama3.1-405b-256", exclude="r1-n05,r2-n11").plan
    shown(plan)
    assert words(browser) == spoken(plan)
    text = browser.run("return document.body.innerText")
    assert "1 of 32 tp groups comes back into one rack" in text
    assert "assumed: uplinks not oversubscribed; at 2:1 this plan saves" in text
    shown(plan, "megatron-default")
    assert words(browser).startswith("Saves 6.6 s a step (")
