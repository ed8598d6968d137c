"""What a plan keeps of its inputs, and reads back; from placement to plan and back."""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placer
from placer.base.errors import InputError
from placer.base.hostlist import expand, fold
from placer.documents import document_of
from placer.documents.presets import preset_names
from placer.job.orders import in_order
from placer.job.read import decode_job
from placer.job.rules import Pin
from placer.job.write import to_document
from placer.placement.build import placement_of_plan
from placer.placement.inputs import Inputs, inputs_of, planned_job
from placer.testing.strategies import tiny, tiny_plan
from placer.topology.build import Nodes, build
from placer.topology.read import parse_topology
from placer.topology.write import compact_document
from placer.topology.write import to_document as topology_document

ROOT = Path(__file__).resolve().parents[2]
NODE, RACK, CLUSTER = placer.read_topology("rack:2 node:2 gpu:2").tiers
FIGURES = NODE, replace(RACK, rails=True), CLUSTER


def read_back(machine, write=compact_document):
    return parse_topology(json.dumps(write(machine)), "machine.json")


def assert_same(machine, other):
    assert other.sha256 == machine.sha256
    assert other.node_names == machine.node_names
    assert dict(other.unavailable) == dict(machine.unavailable)
    assert other.scheduler == machine.scheduler
    for tier in range(len(machine.tiers)):
        built = other.gpus_of_domain(tier)
        np.testing.assert_array_equal(built, machine.gpus_of_domain(tier))


@st.composite
def machines(draw):
    """Racks in any order, slow nodes, nodes with few GPUs, nodes out of use."""
    count = draw(st.integers(2, 12))
    rack = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    kept = sorted(set(rack))
    gpus = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    factor = draw(st.lists(st.sampled_from([1.0, 0.5]), min_size=count, max_size=count))
    names = draw(st.permutations([f"n{i:02d}" for i in range(count)]))
    out = draw(st.sets(st.sampled_from(names), max_size=count - 1))
    nodes = Nodes(
        np.array([range(count), [kept.index(r) for r in rack], [0] * count]),
        (tuple(names), tuple(f"r{r}" for r in kept), (draw(st.sampled_from(["all"])),)),
        np.array(gpus),
        np.array(factor),
        dict.fromkeys(sorted(out), draw(st.sampled_from(["xid 79", "no: reason"]))),
    )
    if nodes.problem:
        nodes = replace(nodes, gpus=np.ones(count, np.int64), unavailable={})
    scheduler = draw(st.sampled_from(["", "slurm", "kubernetes"]))
    return replace(build("random", FIGURES, nodes), scheduler=scheduler)


@given(machines())
def test_a_machine_reads_back_as_it_was(machine):
    """Whatever it has: the same digest, nodes, uplinks and nodes out of use.

    One that is shown, node by node, has its names and tiers too.
    """
    assert_same(machine, read_back(machine))
    again = read_back(machine, topology_document)
    assert (again.sha256, again.node_names) == (machine.sha256, machine.node_names)
    assert (again.tiers, again.domain_names) == (machine.tiers, machine.domain_names)


@pytest.mark.parametrize("name", [*preset_names("topologies"), "rack:3 node:5 gpu:4"])
def test_a_regular_machine_is_its_layout(name):
    """Presets and texts take a layout, however many nodes they have."""
    machine = placer.read_topology(name)
    document = compact_document(machine)
    assert "layout" in document
    assert "nodes" not in document
    assert_same(machine, read_back(machine))


@pytest.mark.parametrize("name", ["job", "workload"])
def test_every_key_of_a_job_is_read_back(name):
    """Of files with all of them; the digest is the same."""
    job = placer.read_job(ROOT / f"tests/schemas/{name}.yaml")
    again = decode_job(document_of(to_document(job), "again"))
    assert again.sha256 == job.sha256
    for field in fields(job):
        mine, its = getattr(job, field.name), getattr(again, field.name)
        if field.name not in ("traffic", "roles"):
            assert mine == its, field.name


@pytest.mark.parametrize("name", preset_names("jobs"))
def test_a_job_reads_back_as_it_was(name, tmp_path):
    """Every preset keeps its digest; a group of all ranks stays one word."""
    job = placer.read_job(name)
    flows = 0 if job.traffic is None else len(job.traffic.senders)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(to_document(job)))
    assert len(path.read_text()) < 10_000 + 30 * flows
    again = placer.read_job(path)
    assert again.sha256 == job.sha256
    assert (again.description, again.sources) == (job.description, job.sources)


ENDS = "1", "09", "9", "10", "11"
NAMES = [letters + end for letters in ("a", "b", "ca") for end in ENDS]


@given(st.lists(st.sampled_from(NAMES), min_size=1), st.integers(4, 40))
def test_folded_lists(names, longest):
    """Several lists expand to the names in order, none longer than it may be."""
    lists = list(fold(names, longest))
    assert [name for text in lists for name in expand(text)] == names
    assert all(len(text) <= longest or text in names for text in lists)


def test_a_plan_keeps_its_allocation_and_its_rules():
    """Hosts in launch order, hosts left out, requirements and rules: all come back."""
    topology, job = placer.read_topology("rack:4 node:4 gpu:8"), "quickstart"
    rules = placer.Rules(
        pin=(Pin((0,), ("r3-n1", "r1-n2")),), avoid=("r1-n3",), spares={"rack": 1}
    )
    plan = placer.place(
        topology,
        placer.read_job(job),
        hosts="r3-n[1-4],r1-n[1-4]",
        exclude="r1-n4",
        require={"pp": "rack"},
        rules=rules,
        effort="quick",
    ).plan
    kept = plan.inputs
    assert (kept["hosts"], kept["exclude"]) == ("r3-n[1-4],r1-n[1-4]", "r1-n4")
    found = inputs_of(plan)
    assert found.machine.node_names == tuple(expand("r3-n[1-4],r1-n[1-3]"))
    assert found.require == {"pp": "rack"}
    assert found.rules == rules
    assert found.to_document() == kept
    for_all = Inputs(topology, placer.read_job(job))
    assert for_all.to_document()["hosts"] == ""
    some = Inputs(topology.select(np.arange(3)), placer.read_job(job))
    assert some.to_document()["hosts"] == "r1-n[1-3]"


def test_what_is_missing_is_named():
    """A plan without inputs asks for those that are not given."""
    topology = placer.read_topology("rack:4 node:4 gpu:8")
    with pytest.raises(placer.InputError) as error:
        inputs_of(tiny_plan())
    assert error.value.problems[0].hint == (
        "give the topology and the job it was made for: topology=, job="
    )
    with pytest.raises(placer.InputError) as error:
        inputs_of(tiny_plan(), topology)
    assert "topology" not in error.value.problems[0].hint


def test_changed_inputs_are_refused():
    """Inputs in a plan that are not those it names are refused unless forced."""
    topology, job = placer.read_topology("dgx-h100-4x8"), placer.read_job("quickstart")
    plan = placer.place(topology, job).plan
    wrong = replace(plan, topology={**plan.topology, "sha256": "0" * 64})
    with pytest.raises(placer.InputError, match=r"inputs\.topology.*another topology"):
        inputs_of(wrong)
    assert inputs_of(wrong, force=True).topology.sha256 == topology.sha256
    for call in (placer.score, lambda made: placer.explain(made, ranks=[0])):
        with pytest.raises(placer.InputError, match=r"inputs\.topology.*another"):
            call(wrong)
    with pytest.raises(placer.InputError, match="made for another topology"):
        inputs_of(plan, placer.read_topology("rack:2 node:4 gpu:8"))
    rules = {"floors": {"rack": 1}, "require": {"tp": 1}}
    with pytest.raises(placer.InputError) as error:
        inputs_of(replace(plan, inputs={**plan.inputs, "rules": rules, "hosts": 7}))
    assert [(p.key, p.message) for p in error.value.problems] == [
        ("inputs.hosts", "expected a host list"),
        ("inputs.rules.require", "expected a tier for each axis"),
        ("inputs.rules.floors", "there is no such rule"),
    ]


def test_unknown_nodes_and_gpus():
    """Every node that the topology lacks is named, with the reason if there is one.

    Of a GPU that its node does not have, rank, node and count are named.
    """
    topology, _ = tiny()
    fewer = replace(
        topology.select(np.arange(6)), unavailable={"n006": "xid 79"}, name="half"
    )
    with pytest.raises(InputError) as caught:
        placement_of_plan(tiny_plan(), fewer)
    assert [str(problem) for problem in caught.value.problems] == [
        "nodes[6]: n006 must not be used: xid 79",
        "nodes[7]: topology half has no node n007",
    ]
    smaller = replace(topology, gpus_of_node=np.array([2, 2, 2, 1, 2, 2, 2, 2]))
    with pytest.raises(InputError, match=r"gpu_of_rank\[7\]: n003 has 1 GPU, none wi"):
        placement_of_plan(tiny_plan(), smaller)


OTHER = ("dp", "tp", "cp", "ep", "pp")


def test_other_jobs_are_refused():
    """A job of another size or another order is refused with both."""
    _, job = tiny()
    plan = tiny_plan()
    with pytest.raises(InputError, match=r"numbers ranks by .*, the job by dp-tp-"):
        planned_job(in_order(job, OTHER), plan)
    axes = replace(job.parallelism, dp=job.parallelism.dp * 2)
    with pytest.raises(InputError, match="the plan has 16 ranks, the job 32"):
        planned_job(replace(job, parallelism=axes), plan)
