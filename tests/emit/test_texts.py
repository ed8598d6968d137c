"""Whole texts of tiny files, written by hand from the launchers' documentation."""

from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from placer.base.errors import EmitError, InputError, OutputError
from placer.emit import emit
from placer.placement.plan import Plan
from tests.emit.readback import CONTIGUOUS, FREE, INTERLEAVED, OF_PLANS, plan_of, texts


def test_slurm_hostfile() -> None:
    """A host file has one plain host a task, in rank order, and nothing else."""
    expected = "n3\nn1\nn4\nn2\nn1\nn3\nn2\nn4\n"
    assert emit(plan_of(INTERLEAVED), "slurm-hostfile") == expected


def test_openmpi_rankfile() -> None:
    """A rankfile has one line a rank; slots count up on each host."""
    assert emit(plan_of(INTERLEAVED), "openmpi-rankfile") == dedent("""\
        rank 0=n3 slot=0
        rank 1=n1 slot=0
        rank 2=n4 slot=0
        rank 3=n2 slot=0
        rank 4=n1 slot=1
        rank 5=n3 slot=1
        rank 6=n2 slot=1
        rank 7=n4 slot=1
        """)


def test_csv() -> None:
    """The table tells local rank and GPU apart."""
    assert emit(plan_of(FREE), "csv") == dedent("""\
        rank,host,node_rank,local_rank,gpu
        0,n3,0,0,0
        1,n1,1,0,1
        2,n4,2,0,0
        3,n2,3,0,1
        4,n1,1,1,0
        5,n3,0,1,1
        6,n2,3,1,0
        7,n4,2,1,1
        """)


def test_json() -> None:
    """The document names its format and has one line a rank."""
    assert emit(plan_of([("b", 1), ("a", 0)]), "json") == dedent("""\
        {"format": "placer/rank-map", "version": 1,
         "world_size": 2,
         "ranks": [
          {"rank": 0, "host": "b", "node_rank": 0, "local_rank": 0, "gpu": 1},
          {"rank": 1, "host": "a", "node_rank": 1, "local_rank": 0, "gpu": 0}
        ]}
        """)


def test_torchrun_names_every_node_once() -> None:
    """The script holds node ranks and process counts, and GPUs when permuted."""
    text = emit(plan_of(CONTIGUOUS), "torchrun")
    assert "    (n3) node_rank=0 processes=2 ;;\n    (n1) node_rank=1 pro" in text
    assert "CUDA_VISIBLE_DEVICES" not in text
    permuted = emit(plan_of([("b", 1), ("b", 0), ("a", 0)]), "torchrun")
    assert "    (b) node_rank=0 processes=2 gpus=(1 0) ;;\n" in permuted


def test_env_lists_ranks_by_gpu() -> None:
    """The script holds each node's ranks in the order of their GPUs."""
    text = emit(plan_of(FREE), "env")
    assert "    (n3) node_rank=0 ranks=(0 5) gpus=(0 1) ;;\n" in text
    assert "    (n1) node_rank=1 ranks=(4 1) gpus=(0 1) ;;\n" in text


@pytest.mark.parametrize(
    ("format", "seats", "message"),
    [
        (
            "torchrun",
            FREE,
            "torchrun gives every node consecutive ranks, but n3 holds 0, 5; "
            "formats that can: torchrun-wrapper, env, sbatch, hydra, jax, "
            "kubernetes-job, kubernetes-jobset, kubernetes-pinned, kubeflow-trainer, "
            "ray, json, csv",
        ),
        (
            "torchrun",
            INTERLEAVED,
            "torchrun gives every node consecutive ranks, but n3 holds 0, 5; "
            "formats that can: torchrun-wrapper, env, sbatch, slurm-hostfile, "
            "openmpi-seq, openmpi-rankfile, hydra, jax, kubernetes-job, "
            "kubernetes-jobset, kubernetes-pinned, kubeflow-trainer, ray, json, csv",
        ),
        (
            "slurm-hostfile",
            [("b", 1), ("b", 0), ("a", 0)],
            "slurm-hostfile says nothing of GPUs, so local rank k takes GPU k, but the "
            "ranks of b run on GPUs 1, 0; formats that can: torchrun, "
            "torchrun-wrapper, env, sbatch, sbatch-torchrun, hydra, deepspeed-node, "
            "jax, kubernetes-pinned, ray, json, csv",
        ),
    ],
)
def test_refusals(format: str, seats: list[tuple[str, int]], message: str) -> None:
    """A refusal names the launcher's rule, the node and the formats that can."""
    with pytest.raises(EmitError) as refusal:
        emit(plan_of(seats), format)
    assert str(refusal.value) == message


def broken(nodes: tuple[str, ...], node_of_rank: list[int], gpus: list[int]) -> Plan:
    return Plan(
        topology={},
        job={},
        nodes=nodes,
        domains={},
        node_of_rank=np.array(node_of_rank, dtype=np.int64),
        gpu_of_rank=np.array(gpus, dtype=np.int64),
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
def test_broken_plans(format: str, plan: Plan, message: str, tmp_path: Path) -> None:
    """No format writes a plan that cannot run."""
    with pytest.raises(EmitError, match=message):
        emit(plan, format, tmp_path / "files")
    assert not list(tmp_path.iterdir())


def test_unknown_format() -> None:
    """A wrong format name is answered with the nearest one and all of them."""
    with pytest.raises(InputError) as error:
        emit(plan_of(FREE), "slurm-hostfiel")
    assert '(did you mean "slurm-hostfile"?)' in str(error.value)
    assert "openmpi-rankfile" in str(error.value)
    with pytest.raises(InputError, match='unknown format "lsf"\n'):
        emit(plan_of(FREE), "lsf")


def test_a_folder(tmp_path: Path) -> None:
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


def test_writes_the_same_text(tmp_path: Path) -> None:
    """With a path the same text lands in the file and the path comes back."""
    path = emit(plan_of(FREE), "csv", tmp_path / "map.csv")
    assert path == tmp_path / "map.csv"
    assert path.read_text() == emit(plan_of(FREE), "csv")


def test_package_answers_the_public_call() -> None:
    """``placer.emit`` is callable even after its submodules were imported."""
    import placer.emit
    import placer.emit.registry

    assert placer.emit(plan_of(FREE), "csv") == emit(plan_of(FREE), "csv")
