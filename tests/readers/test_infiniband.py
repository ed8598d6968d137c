"""``ibnetdiscover``: rails, spines, hosts that cannot be told, and cut files."""

import re

import pytest

from placer.base.errors import InputError
from placer.formats.machines.ibnetdiscover import units_of_hosts
from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import read
from tests.readers import cases
from tests.readers.cases import machine_of, nodes_of_domains, rail_fabric, tier_names


def machine(folder, fabric, *texts, hardware=cases.H100):
    return machine_of(folder, fabric.text(), *texts, hardware=hardware)


def test_pods_below_a_core(tmp_path):
    """Two fabrics of two units, their spines joined by a core: pods are tiers."""
    fabric = rail_fabric(num_units=4, spines=4)
    # The generator joins all leaves to all spines: pods keep their own two.
    for leaf in [n for n in fabric.ports if n.startswith("S-0000000000001")]:
        pod = (int(leaf[2:], 16) - 0x1000) // 4
        for spine in range(4):
            if spine // 2 != pod:
                fabric.cut(leaf, f"S-{spine:016x}")
    core = fabric.add("S-00000000000000ff", "MF0;core:Q/U1")
    for spine in range(4):
        fabric.link(core, f"S-{spine:016x}")
    found, _ = machine(tmp_path, fabric)
    assert tier_names(found) == ["node", "rails", "spine", "core"]
    assert list(nodes_of_domains(found, "spine").values()) == [
        ["h0", "h1", "h2", "h3"],
        ["h4", "h5", "h6", "h7"],
    ]


def test_few_links(tmp_path):
    """A leaf with one link where others have two is reported."""
    fabric = rail_fabric()
    leaf, spine = "S-0000000000001000", "S-0000000000000000"
    first = next(i for i, e in enumerate(fabric.ports[leaf]) if e[0] == spine)
    _, end = fabric.ports[leaf][first]
    fabric.ports[leaf][first] = fabric.ports[spine][end - 1] = ("", 0)
    _, notes = machine(tmp_path, fabric)
    (note,) = [note for note in notes if "usual 2 links" in note]
    assert '1 of 8: "MF0;leaf0-0:Q/U1" to "MF0;spine0:Q/U1"' in note


def test_names_of_adapters(tmp_path):
    """Adapters called as their card, and hosts that share a name, are named by GUID."""
    fabric = rail_fabric()
    guids = [f"H-{0x10000000 + i:016x}" for i in range(4)]
    for guid in guids[:2]:
        fabric.names[guid] = "MT4129 ConnectX7   Mellanox Technologies"
    for guid in guids[2:]:
        fabric.names[guid] = "node mlx5_0"
    sharp = fabric.add("H-00000000000000aa", "Mellanox Technologies Aggregation Node")
    fabric.link("S-0000000000001000", sharp)
    found, notes = machine(tmp_path, fabric)
    assert found.node_names == ("h2", "h3")
    assert any("cannot be told: 4 of 8" in note for note in notes)
    assert any("several hosts have, not used: node" in note for note in notes)
    assert any("(SHARP) inside switches: 1" in note for note in notes)
    names = tmp_path / "names"
    lines = [f"0x{guid[2:]} h{i // 2}\n" for i, guid in enumerate(guids)]
    names.write_text("".join(lines))
    found = read_topology(
        [tmp_path / "source0", f"names:{names}"],
        hardware=cases.H100,
        note=lambda _: None,
    )
    assert sorted(found.node_names) == ["h0", "h1", "h2", "h3"]
    assert len(found.domain_names[1]) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[: t.index("\nvendid", t.index("\nCa"))], "but has no block"),
        (lambda t: t[: t.rindex("\nCa")], "but has no block"),
        (lambda t: t[: t.rindex("\n[1]")], "is shown at one end only"),
        (lambda t: t + t, "comes twice: two answers in one file?"),
        (lambda t: t.replace("[2]", "[1]", 1), "comes twice"),
        (lambda t: t[t.index("\n[1]") :], "a port before the first block: cut?"),
        (lambda _: 'Ca 1 "H-1" # "a b"\n', "no switch in it"),
        (lambda t: t.replace("mlx5_", "HCA in "), "no listed host is on a switch"),
    ],
)
def test_cut_files(change, message):
    """A file that is cut, doubled or without hosts is refused, not filled in."""
    text = change(rail_fabric().text())
    with pytest.raises(InputError, match=re.escape(message)):
        read("ibnetdiscover", text, "source").join({}, ())


def test_units_of_hosts():
    """Largest sets stand; a smaller one joins the only set around it, or none.

    ``e`` lies on a leaf of both sets and stays apart; ``d`` overlaps, and is its own.
    """
    leaves = {"a": {"1", "2"}, "b": {"2", "3"}, "c": {"1"}, "e": {"2"}}
    units = units_of_hosts(leaves)
    assert units.leaves == [{"1", "2"}, {"2", "3"}]
    assert units.of_host == {"a": 0, "b": 1, "c": 0}
    assert "leaves in several sets of rails: 1" in units.notes[0]
    assert units.notes[1].endswith(": 1: e")


@pytest.mark.slow
def test_large_fabric(tmp_path):
    """16,384 hosts of four adapters in 512 units are read."""
    found, _ = machine(tmp_path, rail_fabric(512, 32, 4, 16))
    assert found.num_nodes == 16_384
    assert len(found.domain_names[1]) == 512
