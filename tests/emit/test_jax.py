"""The emitted JAX loader, on a stand-in for JAX."""

from pathlib import Path

import pytest

from placer.base.errors import EmitError
from placer.emit import emit
from tests.emit.readback import CONTIGUOUS, FREE, Seat, plan_of
from tests.emit.stubs import FakeJax, load_jax


def emitted(folder: Path, seats: list[Seat], **sizes: int) -> Path:
    plan = plan_of(seats)
    plan.job.update({"parallelism": sizes} if sizes else {})  # type: ignore[attr-defined]
    return Path(emit(plan, "jax", folder / "jax"))


def test_the_mesh_has_the_job_s_axes(tmp_path: Path) -> None:
    """A rank's position in the mesh is its coordinate: 2 x tp 2 x ... by hand."""
    folder = emitted(tmp_path, FREE, tp=2, dp=2, pp=2)
    array, names = load_jax(folder, FakeJax([2, 2, 2, 2])).mesh()
    assert names == ("pp", "dp", "cp", "tp")
    assert array.shape == (2, 2, 1, 2)
    # Rank 6 = pp 1, dp 1, tp 0 is on n2 (process 3), GPU 0.
    device = array[1, 1, 0, 0]
    assert (device.process_index, device.local_hardware_id) == (3, 0)


@pytest.mark.parametrize(
    ("host", "process"), [("n3", 0), ("n2", 3), ("n1.cluster", 1), ("N1", None)]
)
def test_arguments_of_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, process: int | None
) -> None:
    """A host gets its place in the plan's order; another host gets an error."""
    loader = load_jax(emitted(tmp_path, CONTIGUOUS), FakeJax([2] * 4))
    monkeypatch.setenv("PLACER_HOST", host)
    monkeypatch.delenv("PLACER_MASTER_ADDR", raising=False)
    monkeypatch.delenv("MASTER_PORT", raising=False)
    if process is None:
        with pytest.raises(RuntimeError, match="'N1' is not in the plan"):
            loader.arguments()
        return
    assert loader.arguments() == {
        "coordinator_address": "n3:29500",
        "num_processes": 4,
        "process_id": process,
    }


def test_part_of_a_node(tmp_path: Path) -> None:
    """Processes that see just the plan's GPUs count them in order; too few stop."""
    folder = emitted(tmp_path, [("n1", 7), ("n1", 4)])
    seen = [d.local_hardware_id for d in load_jax(folder, FakeJax([2])).devices()]
    assert seen == [1, 0]
    seen = [d.local_hardware_id for d in load_jax(folder, FakeJax([8])).devices()]
    assert seen == [7, 4]
    with pytest.raises(RuntimeError, match="sees 4 devices, the plan uses GPU 7"):
        load_jax(folder, FakeJax([4])).devices()


def test_a_rehearsal_in_one_process(tmp_path: Path) -> None:
    """One process with a device for every rank stands for all hosts, in their order."""
    folder = emitted(tmp_path, FREE)
    # FREE has n3, n1, n4, n2 in order of lowest rank, two GPUs each: by hand.
    ids = [device.id for device in load_jax(folder, FakeJax([8])).devices()]
    assert ids == [0, 3, 4, 7, 2, 1, 6, 5]
    for processes in ([4], [2, 2]):
        with pytest.raises(RuntimeError, match="processes, but the plan has 4 hosts"):
            load_jax(folder, FakeJax(processes)).devices()


def test_axes_must_make_up_the_ranks() -> None:
    """Axes of another number of ranks are refused, as is a plan file with them."""
    plan = plan_of(FREE)
    plan.job.update({"parallelism": {"tp": 3}})  # type: ignore[attr-defined]
    with pytest.raises(EmitError, match="tp x cp x pp x dp is 3, the plan has 8 ranks"):
        emit(plan, "jax", "nowhere")
