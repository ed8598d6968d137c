"""Orders of nodes from round to round, without torch."""

import json
import shlex
import time

import pytest

import placer
from placer.base.errors import InputError
from placer.injob.again import placed_again
from placer.injob.bounded import LateError
from placer.injob.nodes import completed, machine_of
from placer.injob.work import job_of
from tests.injob.stand_ins import line
from tests.texts import table

DEGREES = [
    *("--tensor-model-parallel-size", "4", "--context-parallel-size", "2"),
    *("--pipeline-model-parallel-size", "2"),
]


def nodes(numbers):
    """Probes of nodes; node k is in NVLink domain k mod 4."""
    return [json.loads(line(f"n{k}", nvlink_domain=f"u.{k % 4}")) for k in numbers]


def ordered(numbers, last=None, told=None):
    """The order, and the nodes' numbers by node rank."""
    said = [] if told is None else told
    kept = None if last is None else json.loads(json.dumps(last.kept))
    found = placed_again(nodes(numbers), kept, DEGREES, 60, said.append)
    by_rank = dict(zip(found.ranks, numbers, strict=True))
    return found, [by_rank[rank] for rank in range(len(numbers))]


@pytest.mark.parametrize("lost", [[5], [5, 9, 14]])
def test_restarts_move_as_replace_does(lost):
    """Spares take the places of lost nodes, with as few moves as `replace` needs."""
    first, before = ordered([*range(1, 17)])
    spares = [17, 18, 21][: len(lost)]
    left = [k for k in range(1, 17) if k not in lost]
    told = []
    _, after = ordered([*spares, *left], first, told)
    assert sorted(after) == sorted([*left, *spares])
    known = nodes([*range(1, 17), *spares])
    machine = machine_of(known, str)
    found = placer.replace(
        first.kept["plan"],
        machine,
        failed=[f"n{k}" for k in lost],
        added=[f"n{k}" for k in spares],
        force=True,
    )
    moves = 4 * sum(one != other for one, other in zip(before, after, strict=True))
    assert moves == found.plan.previous["moved"]
    assert f"{moves} ranks move" in told[-1]


def test_the_same_nodes_keep_their_ranks():
    """However c10d numbers them, the nodes of the round before keep their ranks."""
    first, before = ordered([*range(1, 17)])
    assert ordered([*range(16, 0, -1)], first)[1] == before


def test_fewer_and_more_nodes():
    """Without spares the job shrinks by whole replicas, and grows again later."""
    first, _ = ordered([*range(1, 17)])
    fewer, after = ordered([*range(1, 13)], first)
    assert sorted(after) == [*range(1, 13)]
    assert sorted(ordered([*range(1, 17)], fewer)[1]) == [*range(1, 17)]


def test_spares_are_what_suits_least():
    """Of more nodes than wanted the best take part, and after a loss the best spare."""
    probes = nodes([0, 1, 4, 5, 8, 2])  # four of domain 0 and 1, one of domain 2
    first = placed_again(probes, None, DEGREES, 60, str, nodes=4)
    by_rank = dict(zip(first.ranks, probes, strict=True))
    domains = [by_rank[rank]["nvlink_domain"] for rank in range(4)]
    assert "u.2" not in domains
    assert domains[::2] == domains[1::2] or domains[:2] == domains[2:]
    assert first.ranks.count(None) == 2
    same = placed_again(probes[::-1], first.kept, DEGREES, 60, str, nodes=4)
    assert same.ranks == first.ranks[::-1]
    lost = by_rank[3]
    left = [one for one in probes if one is not lost]
    again = placed_again(left, first.kept, DEGREES, 60, str, nodes=4)
    kept = dict(zip((one["host"] for one in left), again.ranks, strict=True))
    for rank in range(3):
        assert kept[by_rank[rank]["host"]] == rank


def test_what_has_no_order():
    """Unequal workers, a name of two nodes and too little time are errors."""
    unequal = nodes([1, 2])
    unequal[1]["gpus"] = 3
    with pytest.raises(InputError, match="unequal numbers of workers"):
        placed_again(unequal, None, [], 60, str)
    odd = nodes([1, 2])
    odd[1]["host"] = "no host"
    with pytest.raises(InputError, match=r"^probes:2:1: host: "):
        placed_again(odd, None, [], 60, str)
    with pytest.raises(LateError):
        placed_again(nodes([*range(64)]), None, [], 0.001, str)


def test_a_thousand_nodes_in_two_seconds_of_cpu():
    """1,024 probes and the degrees of a command are an order in two seconds of CPU."""
    ordered([1, 2, 3, 4])  # what is loaded once
    started = time.process_time()
    ordered([*range(1024)])
    assert time.process_time() - started < 2


def test_nodes_that_contradict_each_other():
    """Switches that cut NVLink domains are left out, and a line says so."""
    lines = "".join(
        line(
            f"n{k}",
            nvlink_domain=f"u.{k // 4}",
            topology_addr=f"s{k % 2}.n{k}",
            topology_pattern="switch.node",
        )
        for k in range(8)
    )
    told = []
    machine = machine_of([*map(json.loads, lines.splitlines())], told.append)
    assert len(machine.tiers) > 1
    assert any("left out Slurm's switches" in note for note in told)


def test_a_node_without_a_probe_is_like_the_others(monkeypatch):
    """It has as many GPUs as most; of its name, which it does not tell, is no word.

    Where no probe counts any, there are as many as Slurm gave the job.
    """
    monkeypatch.setenv("SLURM_GPUS_PER_NODE", "h100:6")
    none = completed("", ["n0", "n1"])
    assert machine_of(none, str).gpus_of_node.tolist() == [6, 6]
    told = []
    text = "".join(line(f"n{k}") for k in range(3)) + line("n3", gpus=2)
    machine = machine_of(completed(text, ["n0", "n1", "n2", "n3", "n4"]), told.append)
    assert machine.gpus_of_node.tolist() == [4, 4, 4, 2, 4]
    assert any("n4: no probe came from it" in note for note in told)
    assert any("2 GPUs instead of 4 GPUs: n3" in note for note in told)
    assert not any("instead of NVIDIA" in note for note in told)


@pytest.mark.parametrize(*table("injob/tables.yaml", "degrees_of_a_command"))
def test_degrees_of_a_command(words, sizes):
    """The degrees of its words make a job; those that do not divide make none."""
    machine = machine_of([json.loads(line(f"n{k}")) for k in range(8)], str)
    axes = job_of(["srun", *words.split()], machine, 32, str, {}).parallelism
    assert [axes.tp, axes.pp, axes.dp] == sizes


def racks(*sizes):
    """A machine of NVLink domains of so many nodes."""
    domains = [f"u.{k}" for k, size in enumerate(sizes) for _ in range(size)]
    lines = (line(f"n{k}", nvlink_domain=one) for k, one in enumerate(domains))
    return machine_of([*map(json.loads, lines)], str)


@pytest.mark.parametrize(*table("injob/tables.yaml", "pods_of_torchrec"))
def test_pods_of_torchrec(words, environ):
    """Each of consecutive ranks in one NVLink domain, which may hold several."""
    machine, told = racks(8, 16), list[str]()
    job = job_of(shlex.split(words), machine, 96, told.append, environ)
    plan = placer.place(machine, job, time_limit=20).plan
    of_rank = [plan.domains["rack"][node] for node in plan.node_of_rank.tolist()]
    assert all(len({*of_rank[k : k + 32]}) == 1 for k in (0, 32, 64))
    assert told == ["TorchRec's pods of 8 nodes: each in one rack"]


@pytest.mark.parametrize("said", ["hybridep", "deepep"])
def test_equal_parts_where_the_command_says_so(said):
    """Degrees of a command that names HybridEP have its rule, others none."""
    words = f"x --expert-model-parallel-size 8 --moe-flex-dispatcher-backend {said}"
    told = []
    job = job_of(words.split(), racks(2, 2), 16, told.append, {})
    assert job.require == ({"ep/even": "rack"} if said == "hybridep" else {})
    assert any("equal parts, one a rack" in text for text in told) == bool(job.require)
