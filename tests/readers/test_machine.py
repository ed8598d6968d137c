"""The way in: sources, hardware, names, and what several sources say together."""

import json
from pathlib import Path

import pytest

import placer
from placer.base.errors import InputError
from placer.documents.recognise import recognise
from placer.formats.machines.registry import FORMATS
from placer.topology.write import compact_document
from tests.commands import data, run
from tests.problems import problems_of
from tests.readers import cases
from tests.readers.cases import machine_of
from tests.texts import table


def written(folder, text, name="source"):
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", FORMATS)
def test_content_shows_the_format(name):
    """Each format is recognised as itself alone; id and host words as nothing."""
    found = recognise(cases.TEXTS[name], FORMATS.values())
    assert found == ([] if name in cases.HIDDEN else [name])


@pytest.mark.parametrize("name", [f for f in FORMATS if f not in cases.NO_NODES])
def test_round_trip(tmp_path, name):
    """Convert and read back: the same tiers, nodes, domains and digest."""
    hardware = cases.HARDWARE.get(name, cases.GB200)
    machine, notes = machine_of(tmp_path, cases.TEXTS[name], hardware=hardware)
    assert any(note.startswith(f"{name}:{tmp_path}/source0: ") for note in notes)
    again = placer.read_topology(
        written(tmp_path, json.dumps(compact_document(machine)), "machine.json")
    )
    assert (again.domain_of_node == machine.domain_of_node).all()
    for key in ("sha256", "tiers", "node_names", "domain_names", "sources"):
        assert getattr(again, key) == getattr(machine, key)
    assert again.scheduler == machine.scheduler == FORMATS[name].scheduler


def test_hardware_by_place_in_the_tree(tmp_path):
    """Leaves take the innermost scale-out tier, the whole machine the outermost.

    Tiers of meta-llama3-24k: node, rack, pod and a cluster at 1:7.
    """
    text = (
        "SwitchName=core Switches=s[1-2]\nSwitchName=s1 Switches=l[1-2]\n"
        "SwitchName=s2 Switches=l[3-4]\n"
    )
    for i in range(1, 5):
        text += f"SwitchName=l{i} Nodes=n[{2 * i}-{2 * i + 1}]\n"
    machine, _ = machine_of(tmp_path, text, hardware="meta-llama3-24k")
    kind = placer.read_topology("meta-llama3-24k")
    figures = [(t.bandwidth, t.latency, t.oversubscription) for t in machine.tiers]
    assert figures == [(t.bandwidth, t.latency, t.oversubscription) for t in kind.tiers]
    two_levels, _ = machine_of(tmp_path, cases.TREE, hardware="meta-llama3-24k")
    assert two_levels.tiers[1].latency == kind.tiers[1].latency
    assert two_levels.tiers[2].oversubscription == 7


@pytest.mark.parametrize(*table("readers/machine.yaml", "sources_that_are_refused"))
def test_sources_that_are_refused(tmp_path, source, text, hardware, message, hint):
    """A preset takes no more; a file is told what is wrong, or the prefix it needs."""
    path = written(tmp_path, text, "file.txt")
    source = [each.replace("PATH", path) for each in source]
    problem, *_ = problems_of(placer.read_topology, source, hardware=hardware)
    assert message in problem.message
    assert hint.replace("PATH", path) in problem.hint


def test_remarks_and_problems_of_sources(tmp_path):
    """Two bad files are both reported; without a callback every note is a warning."""
    texts = "SwitchName=a Foo=1\n", cases.AWS.replace("]", "", 1)
    found = problems_of(machine_of, tmp_path, *texts)
    assert len({problem.source for problem in found}) == 2
    path = written(tmp_path, cases.BLOCKS.replace("BlockSizes=2,4\n", ""))
    with pytest.warns(UserWarning, match="no BlockSizes"):
        placer.read_topology(path, hardware=cases.GB200)


def test_convert_and_use(tmp_path):
    """The command joins sources, writes one file, and place takes either."""
    tree = written(tmp_path, cases.TREE, "tree.conf")
    blocks = written(tmp_path, cases.BLOCKS, "blocks.conf")
    out = str(tmp_path / "machine.json")
    sources = [f"slurm:{tree}", blocks, "--hardware", cases.GB200]
    result = run("topo", "convert", *sources, "-o", out, "--name", "mine")
    assert "note: blocks-2" in result.stderr
    assert json.loads(Path(out).read_text())["name"] == "mine"
    direct = ["-t", tree, "-t", f"slurm:{blocks}", "--hardware", cases.GB200]
    plans = []
    for number, topology in enumerate((["-t", out], direct)):
        plan = str(tmp_path / f"plan{number}.json")
        job = ["-j", "quickstart", "--hosts", "n[5-8]", "--require", "tp=rack"]
        assert run("place", *topology, *job, "-o", plan, "-q").stderr == ""
        plans.append(placer.read_plan(plan))
        run("check", plan, "-j", "quickstart", *topology)
    assert plans[0].topology["sha256"] == plans[1].topology["sha256"]
    assert plans[0].nodes == plans[1].nodes


@pytest.mark.parametrize("name", ["machine.json", "machine.yaml"])
def test_converted_file_keeps_unavailable_nodes(tmp_path, name):
    """With their reasons, as uplinks are made for them: the machine is the same.

    Alike nodes are one entry, and the ending says whether it is YAML.
    """
    key = "nvidia.com/gpu.clique"
    nodes = (
        cases.node(f"n{k}", {key: f"{k // 4}"}, unschedulable=k == 3) for k in range(8)
    )
    source = written(tmp_path, cases.nodes(*nodes))
    hardware = ["--hardware", cases.GB200, "--oversubscription", "cluster=2"]
    out = str(tmp_path / name)
    run("topo", "convert", source, *hardware, "-o", out, "-q")
    text = Path(out).read_text()
    assert text.startswith("{") == name.endswith(".json")
    assert "n[0-3]" in text
    machine = placer.read_topology(out)
    assert machine.unavailable == {"n3": "unschedulable"}
    first, again = (
        data("topo", "validate", *given)[0] for given in ([source, *hardware], [out])
    )
    assert first["sha256"] == again["sha256"]


def test_command_lists_formats():
    """Every format has a line, and a row in JSON."""
    lines = run("topo", "formats").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(FORMATS)
    assert [row["name"] for row in data("topo", "formats")] == list(FORMATS)


def test_standard_input():
    """A source may come through a pipe, with or without its format."""
    for source in ("-", "slurm:-"):
        words = ("topo", "convert", source, "--hardware", cases.H100)
        result = run(*words, input=cases.TREE)
        assert json.loads(result.stdout)["name"] == "stdin"


def test_one_file_a_host(tmp_path):
    """Files without labels are of the hosts they are called after."""
    paths = []
    for name in ("gpu-a", "gpu-b"):
        path = tmp_path / f"{name}.txt"
        path.write_text(cases.fabric_query("9", "9"))
        paths.append(path)
    machine = placer.read_topology(paths, hardware=cases.GB200, note=lambda _: None)
    assert machine.gpus_of_node.tolist() == [2, 2]
    assert list(cases.nodes_of_domains(machine, "rack").values()) == [
        ["gpu-a", "gpu-b"]
    ]


@pytest.mark.parametrize(
    ("more", "options", "error"),
    [
        # Another source is wrong, cannot be joined, or cuts across; a number is wrong.
        ("hosts:n[1-", {}, "never closed"),
        ("hosts:m[1-4]", {}, "no node in common"),
        ("slurm:BlockName=a Nodes=n[2-3]\nBlockName=b Nodes=n[1,4]", {}, "cut across"),
        ("hosts:n[1-4]", {"gpus_per_node": 0}, "expected 1 to"),
    ],
)
def test_notes_are_told_where_an_error_follows(tmp_path, more, options, error):
    """What a reader noted of one source may explain what is wrong with all of them."""
    form, _, text = more.partition(":")
    sources = [written(tmp_path, cases.TWO_SPINES), written(tmp_path, text, "more")]
    sources = [f"slurm:{sources[0]}", f"{form}:{sources[1]}"]
    options, notes = {"hardware": cases.H100} | options, []
    with pytest.raises(InputError, match=error):
        placer.read_topology(sources, note=notes.append, **options)
    assert sum("are one domain: spine1+spine2" in note for note in notes) == 1


def test_reasons_are_told_where_no_node_is_left(tmp_path):
    """A machine of which nothing can be used says why, node by node."""
    items = [cases.node("n1", {}, unschedulable=True), cases.node("n2", {})]
    items[1]["status"] = {"allocatable": {}}
    source, notes = written(tmp_path, cases.nodes(*items)), []
    with pytest.raises(InputError, match="no usable node"):
        placer.read_topology(source, hardware=cases.H100, note=notes.append)
    assert "nodes left out, unschedulable: 1 (n1)" in notes
    assert "nodes left out, no GPUs: 1 (n2)" in notes


@pytest.mark.parametrize("key", ["bandwidth: 450", "bandwidth: 450GB/s, latency: 4"])
def test_a_tier_as_slow_as_no_link_is_asked_for_its_unit(tmp_path, key):
    head = "{format: placer/topology, version: 1, name: a, tiers: [{name: node, size: 8"
    text = (
        f"{head}, {key}}}, {{name: rack, bandwidth: 50GB/s}}], layout: rack:1 node:2}}"
    )
    with pytest.warns(UserWarning, match=r"a: the node tier has .*: is a unit missing"):
        placer.read_topology(written(tmp_path, text))
