"""Verifying a job: right launches pass, any swap is caught, habits are told apart."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placer.launch.compare import compare, notes, ranges, seats_of, verdict_text
from placer.launch.habits import habits
from placer.launch.process import Process
from tests.emit.readback import (
    CONTIGUOUS,
    FREE,
    INTERLEAVED,
    is_contiguous,
    plan_of,
    seatings,
)
from tests.launch.jobs import (
    as_planned,
    blocks,
    by_slurm,
    by_torchrun,
    dealt,
    hosts_of,
    number_key,
)
from tests.texts import table

# Numbers of mixed width, so that text and number order differ; neither is the plan's.
MIXED = [(host, gpu) for host in ("n9", "n10", "n8", "n100") for gpu in (0, 1)]


def found_habits(seats, processes):
    plan = plan_of(list(seats))
    return [h.name for h in habits(plan, seats_of(plan, processes), processes)]


def compared(seats, processes):
    return compare(plan_of(list(seats)), processes)


@given(seatings())
def test_right_launches_pass(seats):
    """What a launcher that follows the plan reports holds, and no habit is claimed."""
    launches = [as_planned(seats)]
    if is_contiguous(seats):
        launches.append(by_torchrun(seats, hosts_of(seats)))
    for processes in launches:
        found = compared(seats, processes)
        assert found.holds
        assert found.unknown_gpus == 0
        assert found_habits(seats, processes) == []


@given(seatings(), st.data())
def test_any_swap_is_caught(seats, data):
    """Two ranks that changed seats are both named, and nobody else."""
    assume(len(seats) > 1)
    pair = st.lists(st.sampled_from(range(len(seats))), min_size=2, max_size=2)
    first, second = sorted(data.draw(pair.filter(lambda p: p[0] != p[1])))
    run = as_planned(seats)
    moved = {
        first: replace(run[second], rank=first),
        second: replace(run[first], rank=second),
    }
    found = compared(seats, [moved.get(r, process) for r, process in enumerate(run)])
    assert [row.rank for row in found.wrong] == [first, second]
    assert not found.missing
    assert not found.repeated


def test_wrong_ranks_are_folded():
    """Neighbours with one fault share a line; GPUs are listed."""
    seats = [(f"n{k}", gpu) for k in range(100) for gpu in range(4)]
    run = by_torchrun(seats, hosts_of(seats)[::-1])
    lines = verdict_text(compared(seats, run)).splitlines()
    assert lines[:2] == [
        "wrong: 400 of 400 ranks are not where the plan has them",
        "  ranks 0-3: planned on n0, run on n99",
    ]
    assert lines[-1] == "  and 368 more ranks"
    gpus = [replace(p, local_rank=p.local_rank ^ 1) for p in as_planned(seats[:4])]
    assert verdict_text(compared(seats[:4], gpus)).splitlines()[1] == (
        "  ranks 0-3 on n0: planned on GPU 0, 1, 2, 3, use 1, 0, 3, 2"
    )


def test_counts():
    """Missing, repeated, foreign ranks and hosts, shared GPUs, another world size."""
    run = as_planned(CONTIGUOUS)
    run = [*run[:3], run[2], *run[5:], replace(run[4], rank=9, host="zz")]
    run[0] = replace(run[0], world_size=16)
    assert verdict_text(compared(CONTIGUOUS, run)).splitlines() == [
        "missing: 2 ranks (3-4)",
        "reported more than once: 1 rank (2)",
        "not in the plan: 1 rank (9)",
        "world size: processes say 8, 16, the plan has 8",
        "hosts that are not in the plan: zz",
        "GPUs used more than once: GPU 0 of n1: ranks 2, 2",
    ]
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (by_slurm(blocks(MIXED, ["n8", "n9", "n10", "n100"])), ["slurm-block"]),
        (by_slurm(dealt(MIXED, ["n8", "n9", "n10", "n100"])), ["cyclic"]),
        (by_slurm(dealt(MIXED, ["n9", "n10", "n8", "n100"])), ["cyclic-planned"]),
        # A script numbers ranks by names as text: Slurm's task 0 is rank 0 by chance.
        (
            [
                replace(p, launcher="env", slurm_procid=k and len(MIXED) - k)
                for k, p in enumerate(by_slurm(blocks(MIXED, sorted(hosts_of(MIXED)))))
            ],
            ["text-order"],
        ),
        ([Process(h, "env", 0, 1, 0) for h, _ in MIXED], ["no-world"]),
    ],
    ids=lambda value: "+".join(value) if value and isinstance(value[0], str) else None,
)
def test_each_habit_about_hosts(run, expected):
    """A launch by a known rule is explained by that rule and by no other."""
    assert found_habits(MIXED, run) == expected
    assert not compared(MIXED, run).holds


def by_mpirun(task_hosts, launcher="openmpi"):
    """Rank r on the r-th host, as Open MPI's variables tell it."""
    return [
        replace(p, launcher=launcher, slurm_procid=None, slurm_nodeid=None)
        for p in by_slurm(task_hosts)
    ]


@pytest.mark.parametrize("own", ["n10", "n100"])
@pytest.mark.parametrize("launcher", ["openmpi", "env"])
@pytest.mark.parametrize("filled", [blocks, dealt])
@pytest.mark.parametrize(
    "listed", [["n9", "n10", "n8", "n100"], ["n8", "n9", "n10", "n100"]]
)
def test_mpirun_puts_its_own_host_first(filled, own, launcher, listed):
    """The host that mpirun was started on, then the host file's order: by that name.

    open-mpi/ompi issue 13199: run on computeA, with a host file of computeB and
    computeA, computeA has the first ranks.
    """
    order = [own, *(host for host in listed if host != own)]
    run = by_mpirun(filled(MIXED, order), launcher)
    assert found_habits(MIXED, run) == ["own-host-first"]


# By the plan's nodes n3, n2, n1, n4.
TREE = {"rack": ("b", "a", "b", "a2"), "block": ("y", "y", "y", "x")}


@pytest.mark.parametrize(*table("launch/verify.yaml", "orders_of_domains"))
def test_orders_of_domains(order, launcher, expected):
    """Sorted labels, and whole domains one after another, are told from the plan's."""
    seats = [(host, gpu) for host in ("n3", "n2", "n1", "n4") for gpu in (0, 1)]
    plan = replace(plan_of(seats), domains=TREE)
    task_hosts = blocks(seats, order)
    run = by_slurm(task_hosts) if launcher == "slurm" else by_torchrun(seats, order)
    assert [h.name for h in habits(plan, seats_of(plan, run), run)] == expected
    flat = [h.name for h in habits(plan_of(seats), seats_of(plan, run), run)]
    assert flat == [name for name in expected if name == "slurm-block"]


PERMUTED = [("n3", 2), ("n3", 0), ("n3", 1), ("n1", 1), ("n1", 2), ("n1", 0)]


def on_gpus(*gpus):
    """As planned but for the GPU of each rank."""
    planned = zip(as_planned(PERMUTED), gpus, strict=True)
    return [replace(process, local_rank=gpu) for process, gpu in planned]


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (by_torchrun(PERMUTED, ["n3", "n1"], permuted=False), ["gpus-by-local-rank"]),
        (on_gpus(1, 0, 2, 0, 2, 1), ["gpus-reversed"]),
        (on_gpus(0, 0, 0, 0, 0, 0), ["one-gpu"]),
        (on_gpus(2, 1, 0, 1, 2, 0), []),
    ],
)
def test_each_habit_about_gpus(run, expected):
    """Hosts right, GPUs wrong: the rule that gives every one of them, or none."""
    assert found_habits(PERMUTED, run) == expected
    assert not compared(PERMUTED, run).holds


@pytest.mark.parametrize("planned", [CONTIGUOUS, MIXED, FREE, INTERLEAVED])
def test_habits_never_contradict_a_report(planned):
    """Whatever the order, the habits claimed are those whose own launch is the same."""
    names = hosts_of(planned)
    simulated = {
        "text-order": blocks(planned, sorted(names)),
        "name-order": blocks(planned, sorted(names, key=number_key)),
        "consecutive": blocks(planned, names),
        "reversed": blocks(planned, names[::-1]),
        "cyclic": dealt(planned, sorted(names, key=number_key)),
        "cyclic-planned": dealt(planned, names),
    }
    for order in permutations(names):
        run = by_torchrun(planned, order)
        observed = [process.host for process in run]
        is_right = observed == [host for host, _ in planned]
        expected = [name for name, hosts in simulated.items() if hosts == observed]
        assert found_habits(planned, run) == ([] if is_right else expected), order


def test_one_process_a_node():
    """Where one process a host reports, its rank is the node rank."""
    run = by_slurm(["n3", "n1", "n4", "n2"])
    found = compared(FREE, run)
    assert (found.unit, found.holds, found.expected) == ("node", True, 4)
    wrong = by_slurm(["n1", "n2", "n3", "n4"])
    found = compared(FREE, wrong)
    assert len(found.wrong) == 4
    assert found_habits(FREE, wrong) == ["slurm-block"]
    pods = [Process(h, "kubernetes", k) for k, h in enumerate(["n3", "n1", "n4", "n2"])]
    assert compared(FREE, pods).holds


def devices(visible):
    """Two ranks on host a, each with these devices in sight."""
    return [
        Process("a", "env", k, 2, k, None if text is None else tuple(text.split(",")))
        for k, text in enumerate(visible)
    ]


@pytest.mark.parametrize(*table("launch/verify.yaml", "what_devices_tell"))
def test_what_devices_tell(visible, holds, unknown):
    """GPU k is device k or the k-th given; what cannot be told is only counted."""
    found = compared([("a", 0), ("a", 1)], devices(visible))
    assert (found.holds, found.unknown_gpus) == (holds, unknown)


def test_no_habit_explains_what_is_not_known():
    """A foreign host, or GPUs that nothing tells, leave a wrong job unexplained."""
    run = by_torchrun(MIXED, sorted(hosts_of(MIXED)))
    assert found_habits(MIXED, run) == ["text-order"]
    assert found_habits(MIXED, [*run[:-1], replace(run[-1], host="spare")]) == []
    unseen = [replace(p, visible=("GPU-a", "GPU-b")) for p in as_planned(PERMUTED)]
    assert found_habits(PERMUTED, unseen) == []
    pods = [Process(h, "kubernetes", k) for k, h in enumerate(hosts_of(PERMUTED))]
    assert found_habits(PERMUTED, pods) == []


def test_habits_of_a_part_of_the_job():
    """Reports that are missing do not hide what the others show."""
    run = by_torchrun(MIXED, sorted(hosts_of(MIXED)))
    assert found_habits(MIXED, run[2:]) == ["text-order"]
    swapped = [replace(p, local_rank=0) for p in as_planned(PERMUTED)]
    assert found_habits(PERMUTED, swapped[1:]) == ["one-gpu"]


def test_notes():
    """What was not compared is said in numbers."""
    found = compared([("a", 0), ("a", 1)], devices(["0", "0"]))
    assert list(notes(found, [3, 3, 4])) == [
        "processes whose GPU is not compared: 2; nothing in their environment tells "
        "which one of the host's it is",
        "reports that cannot be read: 3, in lines 3-4",
    ]
