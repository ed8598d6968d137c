"""``placer topology``: list, show and validate."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from placer.base.errors import InputError
from placer.cli.main import main
from placer.cli.topology import topology as topo
from placer.documents.presets import preset_names
from placer.topology.read import parse_topology, read_topology
from tests.readers.cases import FABRIC, MATRIX


def run(*arguments):
    result = CliRunner().invoke(topo, arguments)
    if isinstance(result.exception, InputError):
        raise result.exception
    return result


def test_list_names_every_preset():
    """Each preset has a line with its size and description."""
    lines = run("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(preset_names("topologies"))
    for line in lines:
        machine = read_topology(line.split()[0])
        assert f" {machine.num_nodes:,} nodes" in line
        assert f" {machine.num_gpus:,} GPUs" in line
        assert machine.description in line


def test_list_as_json():
    """The same as data."""
    rows = json.loads(run("list", "--format", "json").stdout)
    assert [row["name"] for row in rows] == list(preset_names("topologies"))
    assert {tuple(row) for row in rows} == {("name", "nodes", "gpus", "description")}


@pytest.mark.parametrize("arguments", [["nvl72"], ["-t", "nvl72"]])
def test_show_takes_an_argument_or_an_option(arguments):
    """The topology may be named either way."""
    assert "rack: 18 nodes x 4 GPUs" in run("show", *arguments).stdout


def test_show_as_json_is_a_topology():
    """The compiled machine is a topology file of the same machine, an entry a node."""
    text = run("show", "rack:2 node:3 gpu:4", "--format", "json").stdout
    machine = read_topology("rack:2 node:3 gpu:4")
    assert parse_topology(text, "x.json").sha256 == machine.sha256
    assert json.loads(text)["nodes"][3] == {
        "names": "r2-n1",
        "rack": "r2",
        "cluster": "cluster",
    }


@pytest.mark.parametrize("command", ["show", "validate"])
def test_a_topology_must_be_named(command):
    """Without a topology the command is misused."""
    result = run(command)
    assert result.exit_code == 2
    assert "TOPOLOGY" in result.output


def test_validate_reports_each_machine():
    """Valid machines are listed with their size."""
    assert run("validate", "nvl72", "node:2 gpu:8").stdout.splitlines() == [
        "nvl72: valid, 18 nodes, 72 GPUs",
        "node:2 gpu:8: valid, 2 nodes, 16 GPUs",
    ]
    rows = json.loads(run("validate", "-t", "nvl72", "--format", "json").stdout)
    assert rows[0]["sha256"] == read_topology("nvl72").sha256


def test_validate_of_other_formats_needs_no_hardware(tmp_path):
    """What other programs write is read by itself; the hardware may be given."""
    hosts, matrix = tmp_path / "hosts", tmp_path / "topo.txt"
    hosts.write_text("n[1-4]\n")
    matrix.write_text(MATRIX)
    fabric = tmp_path / "fabric.txt"
    fabric.write_text(FABRIC)
    sources = (f"hosts:{hosts}", f"topo-m:{matrix}", str(fabric))
    result = run("validate", *sources)
    assert result.stdout.splitlines() == [
        f"hosts:{hosts}: valid, 4 nodes",
        f"topo-m:{matrix}: valid, it names no nodes",
        f"{fabric}: valid, 4 nodes, 16 GPUs",
    ]
    assert "NV18 between all GPUs" in result.stderr
    rows = json.loads(run("validate", *sources, "-q", "--format", "json").stdout)
    assert [row["gpus"] for row in rows] == [None, None, 16]
    full = run("validate", sources[0], "--hardware", "dgx-h100-4x8").stdout
    assert full == f"hosts:{hosts}: valid, 4 nodes, 32 GPUs\n"


def test_an_old_name_of_a_preset_is_read_with_a_note():
    """A preset that was renamed is read by its old name, and the new one is told."""
    found = CliRunner().invoke(main, ["topo", "show", "dgx-h100-32"])
    assert found.stdout.startswith("dgx-h100-4x8\n")
    assert found.stderr == (
        "note: the preset dgx-h100-32 is dgx-h100-4x8 now; "
        "the old name will be removed\n"
    )
    again = ["place", "-q", "-t", "dgx-h100-32", "-j", "quickstart", "--format", "json"]
    plan = CliRunner().invoke(main, again)
    assert (plan.exit_code, plan.stderr) == (0, "")


def test_validate_lists_the_problems_of_all_files(tmp_path):
    """Problems of every file come together."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("format: placer/topology\nversion: 1\n")
    with pytest.raises(InputError) as caught:
        run("validate", str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"))
    text = str(caught.value)
    assert "a.yaml:1:1" in text
    assert "b.yaml:1:1" in text
