"""Meshes in the order of a placement, their processes as threads."""

import pytest

from placer.base.errors import InputError
from placer.injob import meshes
from placer.injob.bounded import needed
from placer.injob.meshes import mesh_in_order, mesh_job
from tests.injob.at_once import Words, at_once, on_hosts
from tests.texts import table


def orders(hosts, shape, names, limit=60, *members):
    """The mesh that each process gets."""
    words = Words(len(hosts))
    return at_once(
        hosts,
        lambda own: mesh_in_order(
            lambda said: words.gather(own, said), own, shape, names, limit, *members
        ),
    )


@pytest.mark.parametrize(
    ("shape", "names"),
    [((2, 4), ("dp", "tp")), ((2, 2, 2), ("data", "ep", "x")), ((2, 4), ("", ""))],
)
def test_neighbours_share_a_domain(monkeypatch, shape, names):
    """All get one mesh, whose inner groups lie in one NVLink domain."""
    on_hosts(monkeypatch, meshes, 2)
    hosts = [f"n{k // 2}" for k in range(8)]
    first, *others = orders(hosts, shape, names)
    assert others == [first] * 7
    assert sorted(first) == [*range(8)]
    domains = [int(hosts[process][1:]) % 2 for process in first]
    assert domains in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)


def test_without_an_order_it_is_the_given_one(monkeypatch, capsys):
    """Unequal nodes, no time and five dimensions leave the order; a line says why."""
    on_hosts(monkeypatch, meshes, 2)
    hosts = ["n0", "n1", "n1", "n2"]
    assert orders(hosts, (4,), ("dp",)) == [[*range(4)]] * 4
    assert "given order: the nodes start unequal numbers" in capsys.readouterr().err
    hosts = [f"n{k}" for k in range(32)]
    assert orders(hosts, (32,), ("dp",), 1e-9) == [[*range(32)]] * 32
    assert orders(hosts, (2,) * 5, "abcde") == [[*range(32)]] * 32
    assert "more than four dimensions" in capsys.readouterr().err


def test_a_node_without_devices_in_the_mesh(monkeypatch):
    """Devices of some nodes alone: processes of the others get the same answer."""
    on_hosts(monkeypatch, meshes, 1)
    found = orders(["n0", "n1", "n2"], (2,), ("dp",), 60, (0, 1))
    assert found[0] == found[1] == found[2]
    assert sorted(found[0]) == [0, 1]


def test_a_mesh_of_another_size(monkeypatch):
    """It is refused by all, with both sizes."""
    on_hosts(monkeypatch, meshes, 2)
    for error in orders(["n0", "n1"], (2, 2), ("dp", "tp")):
        assert isinstance(error, InputError)
        assert "a mesh of 2 x 2 for 2 devices" in str(error)


@pytest.mark.parametrize(*table("injob/tables.yaml", "dimensions_are_axes"))
def test_dimensions_are_axes(shape, names, sizes, order):
    """By their names; others are the nearer the further right they stand."""
    axes = mesh_job(shape, names).parallelism
    found = {axis: getattr(axes, axis) for axis in ("tp", "cp", "pp", "dp")}
    assert {axis: n for axis, n in found.items() if n > 1} == sizes
    assert "-".join(axes.order).startswith(order)


def test_a_missing_package_is_named():
    """Who opens a door without its package is told which one."""
    with pytest.raises(InputError, match="no_such cannot be imported") as error:
        needed("no_such.part")
    assert "pip install no_such" in str(error.value)
