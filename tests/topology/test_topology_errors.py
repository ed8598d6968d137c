"""What is wrong with a topology file, and where: one case a rule.

In a case's text ``@`` marks the place that the problem must name; it is no part of the
file.
"""

import pytest

from placer.base.errors import InputError
from placer.topology.read import parse_topology, read_topology
from tests.problems import marked, problems_of
from tests.texts import data, table

BASE = data("topology/small.yaml")
NODES = BASE[BASE.index("nodes:") : BASE.index("unavailable:")]
UNAVAILABLE = 'unavailable: {"a2": broken}\n'
LAYOUT_BASE = BASE.replace(NODES, 'layout: "cluster:1 block:2 rack:2 node:2"\n')
LAYOUT_BASE = LAYOUT_BASE.replace(UNAVAILABLE, "")


def problems(text):
    return problems_of(parse_topology, text, "small.yaml")


@pytest.mark.parametrize(*table("topology/errors.yaml", "problem_names_its_place"))
def test_problem_names_its_place(old, new, key, message, hint):
    """A mistake is reported first, at its line, column and key."""
    assert old in BASE
    text, place = marked(BASE.replace(old, new, 1), "@")
    first = problems(text)[0]
    assert (first.line, first.column) == (place or (1, 1))
    assert (first.source, first.key) == ("small.yaml", key or "")
    assert message in first.message
    assert hint in first.hint


@pytest.mark.parametrize(
    *table("topology/errors.yaml", "layout_problem_names_the_layout")
)
def test_layout_problem_names_the_layout(old, new, message, hint):
    """A mistake in a layout is reported there, with the shape it should have."""
    assert old in LAYOUT_BASE
    (problem,) = problems(LAYOUT_BASE.replace(old, new, 1))
    assert (problem.line, problem.column, problem.key) == (9, 9, "layout")
    assert message in problem.message
    assert hint in problem.hint


def test_all_problems_come_at_once():
    """Mistakes in tiers, nodes and unavailable are listed together, in file order."""
    text = (
        BASE.replace("bandwidth: 50GB/s", "bandwidth: fast")
        .replace('"a[3-4]"', '"a[3"')
        .replace("block: b2", "blok: b2")
        .replace('{"a2"', '{"zz9"')
    )
    keys = [problem.key for problem in problems(text)]
    assert keys == [
        "tiers[3].bandwidth",
        "nodes[1].names",
        "nodes[2]",
        "nodes[2]",
        "unavailable.zz9",
    ]


def test_what_is_too_large_or_too_small(monkeypatch):
    """By its GPUs, nodes and tiers, or the length of the names that a layout makes."""
    text = LAYOUT_BASE.replace("size: 4", "size: 1024").replace("node:2", "node:5000")
    assert "20480000 GPUs, the most is 16777216" in problems(text)[0].message
    few = BASE[: BASE.index("  - {name: rack")] + BASE[BASE.index("nodes:") :]
    assert "at least 2" in problems(few)[0].message
    monkeypatch.setattr("placer.topology.nodes.MAX_NODES", 5)
    (problem,) = problems(BASE)
    assert problem.key == "nodes[2].names"
    assert "more than 5 nodes" in problem.message
    names = ["a" * 50 + "x", "a" * 50 + "y", "cluster"]
    tiers = "".join(f"  - {{name: {n}, bandwidth: 1}}\n" for n in names)
    tiers = tiers.replace("bandwidth", "size: 1, bandwidth", 1)
    layout = " ".join(f"{name}:1" for name in reversed(names))
    head = BASE[: BASE.index("  - ")]
    assert "more than 63" in problems(f"{head}{tiers}layout: {layout}\n")[0].message


def test_missing_preset_or_file_is_told_apart():
    """A wrong preset name and a wrong path give different messages."""
    with pytest.raises(InputError, match="no topology preset or file"):
        read_topology("no-such-machine")
    for path in ("missing/machine.yaml", "machine.json", "x" * 5000):
        with pytest.raises(InputError, match=r"cannot be read"):
            read_topology(path)
