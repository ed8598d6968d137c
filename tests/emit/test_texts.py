"""Texts of tiny files, by hand from the launchers' documentation, and where they go."""

import json
from random import Random

import numpy as np
import pytest

from placer.base.errors import EmitError, InputError, OutputError
from placer.emit import emit
from placer.emit.registry import FORMATS
from placer.placement.plan import Plan
from placer.placement.plan_file import write_plan
from tests.commands import refusal, run
from tests.emit.readback import CONTIGUOUS, FREE, OF_PLANS, plan_of, texts


@pytest.mark.parametrize(
    ("format", "seats", "rule"),
    [
        (
            *("torchrun", FREE),
            "torchrun gives every node consecutive ranks, but n3 holds 0, 5",
        ),
        (
            *("dlrover", FREE),
            "dlrover gives every node consecutive ranks, but n3 holds 0, 5",
        ),
        (
            *("slurm-hostfile", [("b", 1), ("b", 0), ("a", 0)]),
            "slurm-hostfile says nothing of GPUs, so local rank k takes GPU k, but the "
            "ranks of b run on GPUs 1, 0",
        ),
        (
            *("deepspeed", [("a", 0), ("b", 0), ("b", 1)]),
            "deepspeed makes the local rank of rank modulo ranks of the node, but b "
            "holds 1, 2",
        ),
    ],
)
def test_refusals(format, seats, rule):
    """A refusal names the launcher's rule and the node, before the formats that can."""
    with pytest.raises(EmitError) as refusal:
        emit(plan_of(seats), format)
    assert str(refusal.value).startswith(f"{rule}; formats that can: ")


def test_axes_must_make_up_the_ranks():
    """Axes of another number of ranks are refused, as is a plan file with them."""
    with pytest.raises(EmitError, match="tp x cp x pp x dp is 3, the plan has 8 ranks"):
        emit(plan_of(FREE, tp=3), "jax", "nowhere")


def broken(nodes, node_of_rank, gpus):
    node_of, gpu_of = (np.array(of, dtype=np.int64) for of in (node_of_rank, gpus))
    return Plan(
        topology={}, job={}, nodes=nodes, node_of_rank=node_of, gpu_of_rank=gpu_of
    )


@pytest.mark.parametrize("format", OF_PLANS)
@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (broken((), [], []), "the plan has no ranks"),
        (broken(("a", "a"), [0, 1], [0, 0]), "two nodes are called a"),
        (broken(("a",), [0, 0], [1, 1]), "need a GPU each"),
        (broken(("a",), [0], [-1]), "need a GPU each"),
    ],
)
def test_broken_plans(format, plan, message, tmp_path):
    """No format writes a plan that cannot run."""
    with pytest.raises(EmitError, match=message):
        emit(plan, format, tmp_path / "files")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "name", "nodes", "message"),
    [
        ("kubernetes-pinned", "node-{:05}.x.example", 4000, "pinned nodes make an obj"),
        ("kubernetes-job", "x" * 40 + "{:05}", 16_000, "a ConfigMap holds 1,048,576"),
        # An argument of Linux is shorter still.
        ("deepspeed-node", "rack-{:05}.example", 4000, "use torchrun"),
    ],
)
def test_plans_that_are_too_large(format, name, nodes, message):
    """A text longer than what takes it is refused, with what fits."""
    seats = [(name.format(k), gpu) for k in range(nodes) for gpu in range(4)]
    with pytest.raises(EmitError, match=message):
        emit(plan_of(seats), format)
    assert emit(plan_of(seats), "kubernetes-jobset" if nodes < 16_000 else "csv")


def test_unknown_format():
    """A wrong format name is answered with the nearest one and all of them."""
    with pytest.raises(InputError) as error:
        emit(plan_of(FREE), "slurm-hostfiel")
    assert '(did you mean "slurm-hostfile"?)' in str(error.value)
    assert "openmpi-rankfile" in str(error.value)
    with pytest.raises(InputError, match='unknown format "lsf"\n'):
        emit(plan_of(FREE), "lsf")


def test_a_folder(tmp_path):
    """A format of several files writes them to a folder, and needs one."""
    folder = tmp_path / "a" / "b"
    for _ in range(2):
        assert emit(plan_of(FREE), "hydra", folder) == folder
    written = {path.name: path.read_text() for path in folder.iterdir()}
    assert written == texts(plan_of(FREE), "hydra")
    for path in (None, "-"):
        with pytest.raises(InputError, match="several files"):
            emit(plan_of(FREE), "hydra", *([path] * (path is not None)))
    with pytest.raises(OutputError, match="cannot be made"):
        emit(plan_of(FREE), "hydra", folder / "machines.txt")


def test_prints_or_writes_the_text(tmp_path):
    """Without a path, or with ``-``, the launcher file itself is printed.

    With one it is written, or a folder of files, and the path is printed; of a plan
    that is refused nothing is.
    """
    plan_file, free = tmp_path / "plan.json", tmp_path / "free.json"
    write_plan(plan_of(CONTIGUOUS, dp=8), plan_file)
    write_plan(plan_of(FREE), free)
    for extra in ((), ("-o", "-")):
        found = run("emit", plan_file, "slurm-hostfile", *extra)
        assert found.stderr == ""
        assert found.stdout == emit(plan_of(CONTIGUOUS, dp=8), "slurm-hostfile")
    for format, name in (("slurm-hostfile", ""), ("hydra", "machines.txt")):
        target = tmp_path / format
        found = run("emit", plan_file, format, "-o", target)
        assert found.stdout == f"{target}\n"
        assert (target / name).read_text().startswith("n3")
    assert "name a folder" in refusal("emit", plan_file, "hydra")
    target = tmp_path / "run.sh"
    refusal("emit", free, "torchrun", "-o", target)
    assert not target.exists()


def test_list_needs_no_plan():
    """``--list`` alone prints one line a format."""
    lines = run("emit", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(FORMATS)


def reordered(nodes, group):
    """Its rule ``ep_dp_pp``: groups by their text, nodes of one by their own rank."""
    return sorted(nodes, key=lambda node: (group.get(node, ""), nodes.index(node)))


@pytest.mark.parametrize("count", [1, 4, 10, 11, 101])
def test_any_order_becomes_the_plan_s(count):
    """However the pods are numbered, also where node ranks differ in digits."""
    hosts = [f"n{k}" for k in range(count)]
    Random(count).shuffle(hosts)
    plan = plan_of([(host, gpu) for host in hosts for gpu in range(2)])
    group = json.loads(emit(plan, "dlrover"))
    assert reordered(sorted(hosts), group) == hosts
