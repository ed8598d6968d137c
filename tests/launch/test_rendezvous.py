"""torchrun's rendezvous backend, on a stand-in for torchrun's static rendezvous."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from placer.base.errors import InputError
from placer.emit import emit
from placer.launch.rendezvous import handler, read_node_map
from tests.emit.readback import CONTIGUOUS, plan_of
from tests.texts import table

ROOT = Path(__file__).resolve().parents[2]
STATIC = "torch.distributed.elastic.rendezvous.static_tcp_rendezvous"


@pytest.fixture(autouse=True)
def static_rendezvous(monkeypatch):
    """torchrun's module, which gives back what it was asked."""
    module = ModuleType(STATIC)
    module.create_rdzv_handler = lambda parameters: parameters
    names = STATIC.split(".")
    for k in range(1, len(names)):
        package = ModuleType(".".join(names[:k]))
        monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, STATIC, module)
    for name in ("PLACER_HOST", "SLURMD_NODENAME", "PLACER_MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def node_map(tmp_path):
    return str(emit(plan_of(CONTIGUOUS), "torchrun-map", tmp_path / "nodes.json"))


def ask(path, nodes=4, endpoint=""):
    """What the backend hands to torchrun's static rendezvous."""
    parameters = SimpleNamespace(
        config={"map": path}, min_nodes=nodes, max_nodes=nodes, endpoint=endpoint
    )
    return handler()(parameters)


def test_every_host_gets_its_node_rank(node_map, monkeypatch):
    """Node ranks follow the plan's node order; the first node is the endpoint."""
    ranks = {}
    for host in ("n1", "n2", "n3", "n4"):
        monkeypatch.setenv("SLURMD_NODENAME", f"{host}.cluster")
        asked = ask(node_map)
        ranks[host] = asked.config["rank"]
        assert asked.endpoint == "n3:29500"
        # torchrun refuses a rendezvous of another name than the backend asked for.
        assert asked.get_backend() == "placer"
    assert ranks == {"n3": 0, "n1": 1, "n4": 2, "n2": 3}


@pytest.mark.parametrize("limit", ["abc", "-5", "inf", "nan"])
def test_a_limit_that_is_none_is_refused(limit):
    """Before any node waits for another."""
    with pytest.raises(InputError, match=f'limit: expected seconds, got "{limit}"'):
        handler()(SimpleNamespace(config={"limit": limit}))


def test_a_given_endpoint_stays(node_map, monkeypatch):
    """An endpoint on the command line, or another address of the first node, wins."""
    monkeypatch.setenv("PLACER_HOST", "n4")
    assert ask(node_map, endpoint="n3-ib:4").endpoint == "n3-ib:4"
    monkeypatch.setenv("PLACER_MASTER_ADDR", "10.0.0.3")
    assert ask(node_map).endpoint == "10.0.0.3:29500"


def test_what_does_not_fit_is_an_error(node_map, monkeypatch):
    """Another number of nodes and a host outside the map start nothing."""
    monkeypatch.setenv("PLACER_HOST", "n9")
    with pytest.raises(InputError, match="it maps 4 nodes, --nnodes is 3:3"):
        ask(node_map, nodes=3)
    with pytest.raises(InputError, match="host 'n9' is not in the map"):
        ask(node_map)


@pytest.mark.parametrize(*table("launch/rendezvous.yaml", "bad_maps"))
def test_bad_maps(tmp_path, text, message):
    """A file that is no node map is refused by name."""
    path = tmp_path / "nodes.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_node_map(str(path))
