"""What is wrong with a topology file, and where: one case a rule.

In a case's text ``@`` marks the place that the problem must name; it is no part of the
file.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.topology.read import parse_topology, read_topology

BASE = """\
format: placer/topology
version: 1
name: small
tiers:
  - {name: node, size: 4, bandwidth: 900GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 100GB/s, latency: 5us}
  - {name: block, bandwidth: 100GB/s, latency: 5us}
  - {name: cluster, bandwidth: 50GB/s, latency: 8us}
nodes:
  - {names: "a[1-2]", rack: r1, block: b1}
  - {names: "a[3-4]", rack: r2, block: b1}
  - {names: "c[1-2]", rack: r3, block: b2}
unavailable: {"a2": broken}
"""
NODES = BASE[BASE.index("nodes:") : BASE.index("unavailable:")]
UNAVAILABLE = 'unavailable: {"a2": broken}\n'
LAYOUT_BASE = BASE.replace(NODES, 'layout: "cluster:1 block:2 rack:2 node:2"\n')
LAYOUT_BASE = LAYOUT_BASE.replace(UNAVAILABLE, "")

# what is replaced, by what, key of the problem, words of the message, words of the hint
CASES = {
    "other format": (
        "placer/topology",
        "@placer/plan",
        "format",
        'expected "placer/topology", got "placer/plan"',
        "",
    ),
    "no format": ("format: placer/topology", "@x: 1", "", '"format" is missing', ""),
    "newer version": ("version: 1", "version: @2", "version", "newer", "upgrade"),
    "version as text": ("version: 1", "version: @one", "version", "an integer", ""),
    "no name": ("name: small\n", "", None, '"name" is missing', ""),
    "number as name": ("name: small", "name: @7", "name", "the number 7", '"7"'),
    "unknown key": ("name: small", "name: x\n@nmae: y", "", '"nmae"', '"name"'),
    "tiers are no list": ("tiers:", "tiers: @5\nx:", "tiers", "expected a list", ""),
    "unknown unit": (
        "bandwidth: 50GB/s",
        "bandwidth: @50GX/s",
        "tiers[3].bandwidth",
        'unknown unit "GX/s"',
        "",
    ),
    "no bandwidth": (
        "{name: block, bandwidth: 100GB/s,",
        "@{name: block,",
        "tiers[2]",
        '"bandwidth" is missing',
        "",
    ),
    "bandwidth of nothing": (
        "bandwidth: 50GB/s",
        "bandwidth: @0.5",
        "tiers[3].bandwidth",
        "at least 1 B/s",
        "",
    ),
    "negative latency": (
        "latency: 8us",
        "latency: @-8us",
        "tiers[3].latency",
        "negative",
        "",
    ),
    "no size": (
        "{name: node, size: 4,",
        "@{name: node,",
        "tiers[0]",
        '"size" is missing',
        "",
    ),
    "size as text": (
        "size: 4",
        "size: @four",
        "tiers[0].size",
        'expected an integer, got "four"',
        "",
    ),
    "size of nothing": ("size: 4", "size: @0", "tiers[0].size", "between 1 and", ""),
    "size of an outer tier": (
        "name: rack,",
        "name: rack, size: @2,",
        "tiers[1].size",
        "only the first tier",
        "layout",
    ),
    "gap in scale-up": (
        "name: block,",
        "name: block, scale_up: @true,",
        "tiers[2].scale_up",
        "'rack' inside this one is not scale_up",
        "innermost",
    ),
    "scale-up as text": (
        "scale_up: true",
        "scale_up: @maybe",
        "tiers[0].scale_up",
        "true or false",
        "",
    ),
    "oversubscription of 0": (
        "latency: 8us",
        "oversubscription: @0",
        "tiers[3].oversubscription",
        "0 is not between",
        "",
    ),
    "efficiency above 1": (
        "latency: 8us",
        "efficiency: @1.5",
        "tiers[3].efficiency",
        "1.5 is not between",
        "",
    ),
    "tier twice": ("name: block", "name: @rack", "tiers[2].name", "comes twice", ""),
    "tier with a taken name": (
        "name: block",
        "name: @gpus",
        "tiers[2].name",
        "another meaning",
        "",
    ),
    "tier with a strange name": (
        "name: block",
        'name: @"my block"',
        "tiers[2].name",
        "cannot name a tier",
        "letters",
    ),
    "key of a tier": (
        "name: block,",
        "name: block, @lateny: 1us,",
        "tiers[2]",
        'unknown key "lateny"',
        '"latency"',
    ),
    "layout and nodes": (
        'nodes:\n  - {names: "a[1-2]"',
        'layout: cluster:1\nnodes:\n  @- {names: "a[1-2]"',
        "nodes",
        "both layout and nodes",
        "one of them",
    ),
    "no nodes at all": (NODES + UNAVAILABLE, "", None, '"layout" and "nodes"', ""),
    "empty nodes": (
        NODES + UNAVAILABLE,
        "nodes: @[]\n",
        "nodes",
        "names no node",
        "",
    ),
    "malformed host list": (
        '"a[3-4]"',
        '@"a[3-4"',
        "nodes[1].names",
        "'[' is never closed (position 2)",
        "",
    ),
    "shell in a name": (
        '"a[3-4]"',
        '@"a;rm -rf $HOME"',
        "nodes[1].names",
        "';' is not allowed",
        "",
    ),
    "number as host": ('"a[3-4]"', "@1101", "nodes[1].names", "1101", '"1101"'),
    "empty host list": ('"a[3-4]"', '@","', "nodes[1].names", "names no node", ""),
    "node twice": (
        '"a[3-4]"',
        '@"a[2-3]"',
        "nodes[1].names",
        'node "a2" is listed twice, first in nodes[0]',
        "",
    ),
    "nodes twice": (
        '"a[3-4]"',
        '@"a[1-3]"',
        "nodes[1].names",
        'node "a1" (and 1 more) is listed twice, first in nodes[0]',
        "",
    ),
    "node twice in one entry": (
        '"a[3-4]"',
        '@"a[3,3]"',
        "nodes[1].names",
        'node "a3" is listed twice, first in nodes[1]',
        "",
    ),
    "no rack": (
        '{names: "a[3-4]", rack: r2,',
        '@{names: "a[3-4]",',
        "nodes[1]",
        '"rack" is missing',
        "",
    ),
    "rack in two blocks": (
        "rack: r3, block: b2",
        "rack: @r1, block: b2",
        "nodes[2].rack",
        'rack "r1" lies in block "b1" (nodes[0]) and in "b2"',
        "one parent",
    ),
    "list of racks": (
        "rack: r3, block: b2",
        'rack: @"r[3-4]", block: b2',
        "nodes[2].rack",
        'one rack holds all of an entry, "r[3-4]" is a list',
        "an entry for each rack",
    ),
    "second cluster": (
        "rack: r3, block: b2",
        "rack: r3, block: b2, cluster: @east",
        "nodes[2].cluster",
        'beside "cluster"',
        "whole cluster",
    ),
    "unknown key of a node": (
        "rack: r2,",
        "rack: r2, @gpu: 3,",
        "nodes[1]",
        'unknown key "gpu"',
        '"gpus"',
    ),
    "negative GPUs": (
        "rack: r2,",
        "rack: r2, gpus: @-1,",
        "nodes[1].gpus",
        "-1 is not between 0 and 1024",
        "",
    ),
    "bandwidth factor above 1": (
        "rack: r2,",
        "rack: r2, bandwidth_factor: @2,",
        "nodes[1].bandwidth_factor",
        "2 is not between",
        "",
    ),
    "bandwidth factor of 0": (
        "rack: r2,",
        "rack: r2, bandwidth_factor: @0,",
        "nodes[1].bandwidth_factor",
        "0 is not between",
        "",
    ),
    "unknown unavailable node": (
        '{"a2": broken}',
        '{@"a33": broken}',
        "unavailable.a33",
        'no node is called "a33"',
        '"a3"',
    ),
    "malformed unavailable list": (
        '{"a2": broken}',
        '{@"a[2-1]": broken}',
        "unavailable.a[2-1]",
        "runs backwards",
        "",
    ),
    "no reason": (
        '{"a2": broken}',
        '{"a2": @}',
        "unavailable.a2",
        "expected a text, got nothing",
        "",
    ),
    "nothing left": (
        '{"a2": broken}',
        '@{"a[1-4],c[1-2]": "power cut"}',
        "unavailable",
        "no usable node: all 6",
        "",
    ),
}

LAYOUT_CASES = {
    "tiers in another order": (
        '"cluster:1 block:2 rack:2 node:2"',
        '"node:2 rack:2 block:2 cluster:1"',
        "outermost first, cluster, block, rack, node",
        "cluster:count block:count rack:count node:count",
    ),
    "tier left out": ("rack:2 ", "", "its tiers are cluster, block, node;", ""),
    "GPUs in it": ("node:2", "node:2 gpu:4", "rack, node, gpu;", ""),
    "count of 0": ("node:2", "node:0", "node:0 has no members", ""),
    "no count": ("node:2", "node", "'node' is not tier:count", ""),
    "tier twice": ("rack:2", "block:2", "'block' comes twice", ""),
    "two clusters": ("cluster:1", "cluster:2", "its count is 1, not 2", ""),
    "too many nodes": ("node:2", "node:999999999", "the most is 1048576", ""),
}

PIECES = [
    "", "0", "-1", "1e400", ".nan", "null", "no", "[]", "{}", "[1-9]", "{a: b}", ": ",
    "- ", "\n", "  ", '"', "rack", "n[1-3]", "5us", "cluster", "name: n, ", "gpus: 0",
]  # fmt: skip


def problems_of(text):
    with pytest.raises(InputError) as caught:
        parse_topology(text, "small.yaml")
    return caught.value.problems


def place_of_mark(text):
    before = text[: text.index("@")]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_problem_names_its_place(case):
    """A mistake is reported first, at its line, column and key."""
    old, new, key, message, hint = case
    assert old in BASE
    text = BASE.replace(old, new, 1)
    line_and_column = (1, 1) if key is None else place_of_mark(text)
    text = text.replace("@", "")
    first = problems_of(text)[0]
    assert (first.line, first.column) == line_and_column
    assert first.source == "small.yaml"
    assert first.key == (key or "")
    assert message in first.message
    assert hint in first.hint


@pytest.mark.parametrize("case", LAYOUT_CASES.values(), ids=LAYOUT_CASES.keys())
def test_layout_problem_names_the_layout(case):
    """A mistake in a layout is reported there, with the shape it should have."""
    old, new, message, hint = case
    assert old in LAYOUT_BASE
    problems = problems_of(LAYOUT_BASE.replace(old, new, 1))
    assert len(problems) == 1
    assert (problems[0].line, problems[0].column, problems[0].key) == (9, 9, "layout")
    assert message in problems[0].message
    assert hint in problems[0].hint


def test_machine_has_at_most_so_many_gpus():
    """A machine whose arrays would not fit in memory is refused by its GPU count."""
    text = LAYOUT_BASE.replace("size: 4", "size: 1024").replace("node:2", "node:5000")
    assert "20480000 GPUs, the most is 16777216" in problems_of(text)[0].message


def test_all_problems_come_at_once():
    """Mistakes in tiers, nodes and unavailable are listed together, in file order."""
    text = (
        BASE.replace("bandwidth: 50GB/s", "bandwidth: fast")
        .replace('"a[3-4]"', '"a[3"')
        .replace("block: b2", "blok: b2")
        .replace('{"a2"', '{"zz9"')
    )
    keys = [problem.key for problem in problems_of(text)]
    assert keys == [
        "tiers[3].bandwidth",
        "nodes[1].names",
        "nodes[2]",
        "nodes[2]",
        "unavailable.zz9",
    ]


def test_names_too_long_for_hosts():
    """A layout whose generated names would be no host names is refused."""
    names = ["a" * 50 + "x", "a" * 50 + "y", "cluster"]
    tiers = "".join(f"  - {{name: {n}, bandwidth: 1}}\n" for n in names)
    tiers = tiers.replace("bandwidth", "size: 1, bandwidth", 1)
    layout = " ".join(f"{name}:1" for name in reversed(names))
    head = BASE[: BASE.index("  - ")]
    assert "more than 63" in problems_of(f"{head}{tiers}layout: {layout}\n")[0].message


def test_number_of_listed_nodes_is_limited(monkeypatch):
    """Reading stops when the entries together name too many nodes."""
    monkeypatch.setattr("placer.topology.nodes.MAX_NODES", 5)
    (problem,) = problems_of(BASE)
    assert problem.key == "nodes[2].names"
    assert "more than 5 nodes" in problem.message


@given(st.data())
def test_damaged_files_give_input_errors(data):
    """Whatever is cut, doubled or replaced in a file, only an InputError comes out."""
    text = BASE
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 20)))
        new = data.draw(st.sampled_from(PIECES) | st.text(max_size=3))
        text = text[:start] + new + text[end:]
    try:
        machine = parse_topology(text, "damaged.yaml")
    except InputError:
        return
    assert machine.num_nodes > 0
    assert machine.num_gpus > 0


def test_one_tier_is_too_few():
    """A machine needs a node tier and a cluster tier."""
    start = BASE.index("  - {name: rack")
    text = BASE[:start] + BASE[BASE.index("nodes:") :]
    assert "at least 2" in problems_of(text)[0].message


def test_missing_preset_or_file_is_told_apart():
    """A wrong preset name and a wrong path give different messages."""
    with pytest.raises(InputError, match="no topology preset or file"):
        read_topology("no-such-machine")
    with pytest.raises(InputError, match=r"cannot be read"):
        read_topology("missing/machine.yaml")
    with pytest.raises(InputError, match=r"cannot be read"):
        read_topology("machine.json")
    with pytest.raises(InputError, match=r"cannot be read"):
        read_topology("x" * 5000)
