"""Rows of a sweep: what they hold, and that engines agree on them."""

import json
import time
from dataclasses import replace

import pytest

from placer.api.place import place
from placer.base.errors import PlacerError
from placer.cost.footprint.stages import memory_score
from placer.sweep.grid import grid
from placer.sweep.point import job_at, sweep
from placer.topology.gpu_kinds import Gpu
from placer.workers.cluster import Cluster
from placer.workers.pool import Pool
from tests.sweep.cases import job, machine, task

# dp 16 is more than the machine has, pp 16 more than the model has layers.
POINTS = grid({"dp": (4, 2, 16), "pp": (2, 16)})


def test_rows_are_those_of_single_calls():
    """Every row has the time, bound and status that placing its job alone gives."""
    rows = sweep(task(), grid({"dp": (2, 4, 8)}))
    for row in rows:
        alone = place(machine(), job(dp=row["dp"]))
        assert row["step_time_s"] == alone.score["step_time_s"]
        assert row["exposed_scale_out_s"] == alone.score["exposed_scale_out_s"]
        assert row["lower_bound"] == alone.bound["lower_bound"]
        assert row["status"] == alone.status
        assert row["world_size"] == 8 * row["dp"]
        assert row["global_batch"] == 8 * row["dp"]


def test_points_without_a_placement_are_rows():
    """What cannot be placed and what is no job say why, the last axis fastest."""
    rows = sweep(task(), POINTS)
    asked = [(4, 2), (4, 16), (2, 2), (2, 16), (16, 2), (16, 16)]
    assert [(row["dp"], row["pp"]) for row in rows] == asked
    status = {(row["dp"], row["pp"]): row["status"] for row in rows}
    assert status[16, 2] == "infeasible"
    assert {status[dp, 16] for dp in (2, 4, 16)} == {"invalid"}
    for row in rows:
        assert ("error" in row) == (row["status"] in ("infeasible", "invalid"))
        assert ("step_time_s" in row) != ("error" in row)
    too_large = next(row for row in rows if row["status"] == "infeasible")
    assert "128" in too_large["error"]
    assert "64" in too_large["error"]


def test_points_that_lack_memory_are_not_searched():
    """As infeasible as what has no place, where the machine says what a GPU holds."""
    points = grid({"pp": (1, 2, 4)})
    needs = [memory_score(job_at(job(), p), 0.0) for p in points]
    totals = [need["memory_bytes"]["total"] for need in needs]
    assert totals[0] > totals[1] > totals[2]
    limit = (totals[0] + totals[1]) / 2
    small = replace(machine(), gpu=Gpu(memory=limit))
    rows = sweep(replace(task(), topology=small), points)
    assert [row["status"] == "infeasible" for row in rows] == [True, False, False]
    assert rows[0]["error"].startswith("does not fit: stage 0 needs ")
    assert "step_time_s" not in rows[0]


def test_weak_scaling_efficiency():
    """It is the first step time over the row's, among rows that differ in dp alone."""
    rows = sweep(task(), grid({"dp": (2, 8), "micro_batches": (2, 8)}))
    for micro_batches in (2, 8):
        first, last = (row for row in rows if row["micro_batches"] == micro_batches)
        assert first["weak_scaling_efficiency"] == 1.0
        ratio = first["step_time_s"] / last["step_time_s"]
        assert last["weak_scaling_efficiency"] == ratio
    rows = sweep(task(), grid({"micro_batches": (2, 8)}))
    assert not any("weak_scaling_efficiency" in row for row in rows)


def test_pool_and_sequence_agree():
    """Processes give the bytes that this process gives, in the order of the grid."""
    shared = task()
    expected = json.dumps(sweep(shared, POINTS))
    assert json.dumps(sweep(shared, POINTS, Pool(2))) == expected


def test_progress_and_stop():
    """Each row is told; a stop keeps those that are done."""
    told = []
    points = grid({"dp": (1, 2, 4)})
    rows = sweep(
        task(),
        points,
        progress=lambda done, total: told.append((done, total)),
        stop=lambda: len(told) > 2,
    )
    assert told == [(0, 3), (1, 3), (2, 3)]
    assert [row["dp"] for row in rows] == [1, 2]


def test_pool_stops():
    """A stopped pool starts nothing more and leaves no process behind."""
    told = []
    points = grid({"dp": (1, 2, 4), "micro_batches": tuple(range(1, 30))})
    rows = sweep(
        task(),
        points,
        Pool(2),
        progress=lambda done, _total: told.append(done),
        stop=lambda: told[-1] > 0,
    )
    assert 0 < len(rows) < len(points)


@pytest.fixture(scope="module")
def scheduler():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        protocol="tcp://",
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.filterwarnings("default")
def test_dask_and_sequence_agree(scheduler):
    """A Dask cluster gives the same bytes, in the order of the grid."""
    shared = task()
    expected = json.dumps(sweep(shared, POINTS))
    assert json.dumps(sweep(shared, POINTS, Cluster(scheduler))) == expected


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:9", "nonsense://", "nowhere", "bad://host:1"]
)
def test_no_scheduler_there(address, monkeypatch, capsys):
    """An address that does not answer is named in the error, without a traceback."""
    pytest.importorskip("distributed")
    monkeypatch.setattr("placer.workers.cluster._CONNECT_S", 1)
    start = time.monotonic()
    with pytest.raises(PlacerError, match=f"{address}.*cannot be reached"):
        sweep(task(), POINTS, Cluster(address))
    assert time.monotonic() - start < 15
    assert "Traceback" not in capsys.readouterr().err


def test_no_dask(monkeypatch):
    """Without Dask the error says how to get it."""
    import sys

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(PlacerError, match=r"placer\[dask\]"):
        sweep(task(), POINTS, Cluster("tcp://127.0.0.1:9"))


def test_gpus_and_batch_give_what_follows():
    """A row of GPUs and a global batch is that of its dp and micro-batches, ranked."""
    axes = {"gpus": (16, 32, 20), "global_batch": (32,)}
    rows = sweep(task(), grid(axes))
    points = [{"dp": 2, "micro_batches": 16}, {"dp": 4, "micro_batches": 8}]
    for row, expected in zip(rows, sweep(task(), points), strict=False):
        assert row["step_time_s"] == expected["step_time_s"]
    assert [row.get("rank") for row in rows] == [2, 1, None]
    assert "does not divide 20" in rows[2]["error"]
