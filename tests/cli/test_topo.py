"""``placer topology``: list, show and validate."""

import json

import pytest

from placer.documents.presets import preset_names
from placer.topology.read import parse_topology, read_topology
from tests.commands import data, run
from tests.readers.cases import FABRIC, MATRIX
from tests.texts import table


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("topologies", ("name", "nodes", "gpus", "description")),
        ("jobs", ("name", "ranks", "description")),
    ],
)
def test_list_names_every_preset(kind, keys):
    """Each preset has a line with its size and description, and a row in JSON."""
    command = {"topologies": "topo"}.get(kind, kind)
    lines, rows = run(command, "list").stdout.splitlines(), data(command, "list")
    assert [row["name"] for row in rows] == list(preset_names(kind))
    assert {tuple(row) for row in rows} == {keys}
    for line, row in zip(lines, rows, strict=True):
        assert line.startswith(f"{row['name']} ")
        assert line.endswith(row["description"])
        assert all(f" {row[key]:,} " in line for key in keys[1:-1])
    row = next(row for row in rows if row["name"] in ("quickstart", "dgx-h100-4x8"))
    assert row[keys[-2]] == {"topologies": 32, "jobs": 16}[kind]


def test_show_as_json_is_a_topology():
    """The compiled machine is a topology file of the same machine, an entry a node."""
    text = run("topo", "show", "rack:2 node:3 gpu:4", "--format", "json").stdout
    machine = read_topology("rack:2 node:3 gpu:4")
    assert parse_topology(text, "x.json").sha256 == machine.sha256
    assert json.loads(text)["nodes"][3] == {
        "names": "r2-n1",
        "rack": "r2",
        "cluster": "cluster",
    }


def test_validate_of_other_formats_needs_no_hardware(tmp_path):
    """What other programs write is read by itself; the hardware may be given."""
    hosts, matrix = tmp_path / "hosts", tmp_path / "topo.txt"
    hosts.write_text("n[1-4]\n")
    matrix.write_text(MATRIX)
    fabric = tmp_path / "fabric.txt"
    fabric.write_text(FABRIC)
    sources = (f"hosts:{hosts}", f"topo-m:{matrix}", str(fabric))
    result = run("topo", "validate", *sources)
    assert result.stdout.splitlines() == [
        f"hosts:{hosts}: valid, 4 nodes",
        f"topo-m:{matrix}: valid, it names no nodes",
        f"{fabric}: valid, 4 nodes, 16 GPUs",
    ]
    assert "NV18 between all GPUs" in result.stderr
    rows = data("topo", "validate", *sources, "-q")
    assert [row["gpus"] for row in rows] == [None, None, 16]
    full = run("topo", "validate", sources[0], "--hardware", "dgx-h100-4x8").stdout
    assert full == f"hosts:{hosts}: valid, 4 nodes, 32 GPUs\n"


def test_an_old_name_of_a_preset_is_read_with_a_note():
    """A preset that was renamed is read by its old name, and the new one is told."""
    found = run("topo", "show", "dgx-h100-32")
    assert found.stdout.startswith("dgx-h100-4x8\n")
    assert found.stderr == (
        "note: the preset dgx-h100-32 is dgx-h100-4x8 now; "
        "the old name will be removed\n"
    )
    again = ["place", "-q", "-t", "dgx-h100-32", "-j", "quickstart"]
    assert run(*again).stderr == ""


@pytest.mark.parametrize(*table("report/machine.yaml", "regular_machine_is_one_line"))
def test_regular_machine_is_one_line(text, tree):
    """A regular machine's tree is folded into one line; every tier has a row."""
    assert tree in run("topo", "show", text).stdout.splitlines()
