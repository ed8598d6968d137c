"""Traffic from traces of torch.profiler: what is counted, and what is refused."""

import gzip
import json
from collections import Counter

import numpy as np
import pytest

import placer
from placer.base.errors import InputError
from placer.job.read import read_job
from tests.job.flows import flows

WORLD = 4
ALL = [0, 1, 2, 3]
ELEMENT_BYTES = {"Float": 4, "BFloat16": 2, "Float8_e4m3fn": 1}


def call(name, ranks=ALL, taken=0, given=None, group="default_pg", **more):
    """What PyTorch notes of a call; elements are floats."""
    args = {
        "Collective name": name,
        "dtype": "Float",
        "In msg nelems": taken,
        "Out msg nelems": taken if given is None else given,
        "Group size": len(ranks),
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": group,
        "Process Group Description": group,
        "Process Group Ranks": json.dumps(ranks),
        **more,
    }
    return {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "args": args}


def trace(rank, calls, steps=1, world=WORLD, config=()):
    marks = [
        {"ph": "X", "cat": kind, "name": f"ProfilerStep#{7 + step}"}
        for step in range(steps)
        for kind in ("user_annotation", "gpu_user_annotation")
    ]
    info = {"backend": "nccl", "rank": rank, "world_size": world}
    info["pg_config"] = list(config)
    other = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "args": {"x": 1}}
    return {"distributedInfo": info, "traceEvents": [*marks, other, *calls, {}, 3]}


@pytest.fixture
def read(tmp_path):
    """Reads a job of traces, given as a mapping or a list by rank."""

    def reader(traces, keys="", job="", file="t"):
        (tmp_path / "t").mkdir(exist_ok=True)
        for rank, content in enumerate(traces):
            path = tmp_path / "t" / f"rank{rank}.json"
            path.write_text(json.dumps(content))
        (tmp_path / "job.yaml").write_text(
            "format: placer/job\nversion: 1\nname: traced\n"
            f"parallelism: {{dp: 4}}\nlauncher: {{ranks: free}}\n{job}"
            f"traffic: {{file: {file}{keys}}}\n"
        )
        return read_job(str(tmp_path / "job.yaml"))

    return reader


def everywhere(*calls, steps=1):
    """All ranks make the same calls."""
    return [trace(rank, calls, steps) for rank in ALL]


def groups(job):
    return [
        (each.name, each.collective, each.size_bytes, each.per_step, each.ranks)
        for each in job.groups
    ]


def refused(read, traces, keys="", job=""):
    with pytest.raises(InputError) as caught:
        read(traces, keys, job)
    return str(caught.value)


def test_process_groups_that_do_the_same_run_side_by_side(read):
    """Those of other sizes, descriptions, or with a rank in common do not."""
    pairs = {rank: [rank % 2, rank % 2 + 2] for rank in ALL}
    traces = [
        trace(
            rank,
            [
                call("allreduce", pairs[rank], 8, group="dp"),
                call("_allgather_base", pairs[rank], 1 + rank % 2, 2 + 2 * (rank % 2)),
                call("allreduce", ALL, 8, group="dp"),
            ],
        )
        for rank in ALL
    ]
    halves = ((0, 2), (1, 3))
    assert groups(read(traces)) == [
        ("dp.all_reduce", "all_reduce", 32.0, 1.0, halves),
        ("dp.all_reduce-2", "all_reduce", 32.0, 1.0, (tuple(ALL),)),
        ("default_pg.all_gather", "all_gather", 8.0, 1.0, halves[:1]),
        ("default_pg.all_gather-2", "all_gather", 16.0, 1.0, halves[1:]),
    ]


def test_long_lists_of_ranks_are_found_under_the_groups_name(read):
    """PyTorch cuts them after thirty; an empty list in the head means all ranks."""
    cut = {"Process Group Ranks": "[0, 1, ...]"}
    ranks = {"default_pg": [], "some": [0, 1, 2]}
    config = [{"pg_name": name, "ranks": own} for name, own in ranks.items()]
    calls = [call("allreduce", taken=1, **cut)]
    some = [call("allreduce", [0, 1, 2], 1, group="some", **cut)]
    traces = [trace(r, calls + some * (r < 3), config=config) for r in ALL]
    found = [group.ranks for group in read(traces).groups]
    assert found == [(tuple(ALL),), ((0, 1, 2),)]
    assert "not say all ranks" in refused(read, everywhere(*calls))


def test_kernels_say_it_where_the_host_does_not(read):
    """And count for nothing where it does."""
    host = call("allreduce", taken=5)
    kernel = {**host, "cat": "kernel", "name": "ncclDevKernel_AllReduce"}
    assert groups(read(everywhere(kernel))) == groups(read(everywhere(host, kernel)))
    assert groups(read(everywhere(host)))[0][2:4] == (20.0, 1.0)


def test_what_cannot_be_counted_is_named_with_its_calls(read):
    """It is left out only where the job says so."""
    traces = everywhere(
        call("allreduce", taken=1), *[call("broadcast", taken=9)] * 3, call("reduce")
    )
    said = refused(read, traces)
    assert "12 of broadcast, 4 of reduce" in said
    assert "without: [broadcast, reduce]" in said
    job = read(traces, ", without: [broadcast, reduce]")
    assert [group.collective for group in job.groups] == ["all_reduce"]
    assert "no calls of gather" in refused(
        read, traces, ", without: [broadcast, reduce, gather]"
    )


KERNEL = "ncclDevKernel_AllReduce_Sum(int)"
SILENT_KERNEL = {"cat": "kernel", "name": KERNEL, "args": {"correlation": 5}}
LAUNCH = {"cat": "cuda_runtime", "name": "cudaGraphLaunch", "args": {"correlation": 5}}
# Kernels alone, another backend, an old version, and a CUDA graph.
SILENT = (
    [SILENT_KERNEL],
    [{"cat": "cpu_op", "name": "c10d::allreduce_"}],
    [call("allreduce"), {"cat": "cpu_op", "name": "record_param_comms"}],
    [call("allreduce"), LAUNCH, SILENT_KERNEL],
)
REDUCE = call("allreduce", taken=1)
CUT = {"In split size": "[1, ...]"}
OF_ALL = 'rank 3 calls all_reduce of process group "default_pg"'


@pytest.mark.parametrize(
    ("traces", "said"),
    [
        (everywhere(REDUCE)[:3], "1 of 4 ranks have no trace: 3"),
        ([*everywhere(REDUCE)[:3], trace(2, [REDUCE])], "not the only trace"),
        ([trace(r, [REDUCE], world=8) for r in ALL], "run of 8 ranks"),
        (everywhere(REDUCE, steps=0), "marks no step"),
        ([trace(r, [REDUCE], steps=1 + r // 3) for r in ALL], "marks 2 steps"),
        ([trace(r, [REDUCE] * (1 + r // 3)) for r in ALL], " 1 times, rank 3 2"),
        ([trace(r, [REDUCE] * (r < 3)) for r in ALL], f"{OF_ALL} 0 times, rank 0 1"),
        (everywhere(call("send", taken=1)), "no Dst Rank"),
        (everywhere(call("send", taken=1, **{"Dst Rank": 4})), "no Dst Rank"),
        (everywhere(call("allreduce", [0, 1, 2], 1)), "that its rank"),
        (everywhere(call("allreduce", [0, 1, 2, 9], 1)), "that its rank"),
        (everywhere(call("_allgather_base", taken=3, given=7)), "12 and 28 bytes"),
        (everywhere(call("all_to_allv", taken=3, **CUT)), "split sizes are cut"),
        (everywhere(call("allreduce", taken=3, dtype="Odd")), '"Odd" is no type'),
        (everywhere(call("allreduce", taken=-1)), "are not said"),
        (everywhere(call("barrier")), "no rank sends another anything"),
        ([[1]] * 2, "is no trace of torch.profiler"),
        ([{"a": 1}], "is no trace of torch.profiler"),
        ([{"schema": "1.1.1-chakra.0.0.4", "nodes": []}], "execution trace"),
        ([{"traceEvents": []}], "no distributedInfo"),
        ([trace(4, [])], "no rank below"),
        *(
            (everywhere(*one), "does not say what 1 of its calls send")
            for one in SILENT
        ),
    ],
)
def test_traces_that_leave_something_open_are_refused(read, traces, said):
    """Nothing is guessed, and nothing left out in silence."""
    assert said in refused(read, traces)


def test_what_does_not_go_with_traces(tmp_path, read):
    """A model would count twice, and flows of a file have no steps."""
    assert "count twice" in refused(read, everywhere(REDUCE), job="model: llama3-8b\n")
    assert "steps" in refused(read, everywhere(REDUCE), ", steps: 0")
    assert "contradicts file" in refused(read, everywhere(REDUCE), ", from: [0]")
    (tmp_path / "t.csv").write_text("0,1,5\n")
    with pytest.raises(InputError, match="belongs to traces"):
        read([], ", steps: 2", file="t.csv")


def test_files_by_pattern_compressed_or_not(tmp_path, read):
    """A folder, a pattern and .gz are the same job; a plan needs none of them."""
    first = read(everywhere(REDUCE, call("all_to_all", taken=8)))
    assert read([], file='"t/rank?.json"').sha256 == first.sha256
    assert read([], file=f'"{tmp_path}/t/*.json"').sha256 == first.sha256
    for path in [*(tmp_path / "t").iterdir()]:
        (tmp_path / "t" / f"{path.name}.gz").write_bytes(
            gzip.compress(path.read_bytes())
        )
        path.unlink()
    assert read([]).sha256 == first.sha256
    (tmp_path / "t.et").write_bytes(b"\x0a\x07\x80")
    with pytest.raises(InputError, match=r"execution trace \(Chakra\)"):
        read([], file="t.et")
    with pytest.raises(InputError, match="no such file"):
        read([], file='"u/*.json"')
    result = placer.place("node:2 gpu:2", first)
    placer.check(result.plan)


COLLECTIVES = {
    "allreduce": "all_reduce",
    "_allgather_base": "all_gather",
    "all_gather": "all_gather",
    "_reduce_scatter_base": "reduce_scatter",
    "all_to_all": "all_to_all",
}


def random_call(rng, calls, sent, buffers):
    """One call of some ranks in ``calls``, its bytes counted in the other two.

    The buffer of a gather is what is gathered. Shares of an exchange are of the first
    dimension, so they are no numbers of elements; without any all ranks get the same.
    """
    size = int(rng.integers(2, 5))
    ranks = sorted(rng.choice(4, size, replace=False).tolist())
    kind = str(rng.choice([*ELEMENT_BYTES]))
    elements = int(rng.integers(1, 50)) * size
    num_bytes = elements * ELEMENT_BYTES[kind]
    name = str(rng.choice(["send", "all_to_allv", *COLLECTIVES]))
    if name == "send":
        one, other = ranks[:2]
        more = {"dtype": kind, "Dst Rank": other, "Src Rank": one}
        calls[one].append(call("send", ranks, elements, **more))
        calls[other].append(call("recv", ranks, elements, **more))
        sent[one, other] += num_bytes
        return
    for rank in ranks:
        shares = []
        if name == "all_to_allv":
            shares = rng.multinomial(6, np.ones(size) / size).tolist()
            shares = shares if rng.integers(2) else []
            for to, share in zip(ranks, shares or [6 / size] * size, strict=True):
                sent[rank, to] += share / 6 * num_bytes * (rank != to)
        else:
            buffers[rank, COLLECTIVES[name]] += num_bytes
        taken = elements // size if "gather" in name else elements
        given = elements // size if "scatter" in name else elements
        more = {"In split size": str(shares), "dtype": kind}
        calls[rank].append(call(name, ranks, taken, given, **more))


def test_random_runs_keep_every_byte(read):
    """Bytes that leave each rank in a step, counted a second time call by call.

    Steps are those that are marked, unless the job says how many there were.
    """
    rng = np.random.default_rng(14)
    for turn in range(40):
        steps = int(rng.integers(1, 4))
        calls = {rank: [] for rank in ALL}
        sent, buffers, found = Counter(), Counter(), Counter()
        for _ in range(int(rng.integers(1, 12))):
            random_call(rng, calls, sent, buffers)
        idle = [call("wait", [0]), call("barrier"), call("init")]
        traces = [trace(rank, calls[rank] + idle, steps) for rank in ALL]
        if turn % 2:
            steps *= 3
        job = read(traces, f", steps: {steps}" if turn % 2 else "")
        pairs = flows(job) if job.traffic else {}
        for group in job.groups:
            for rank in (rank for ranks in group.ranks for rank in ranks):
                found[rank, group.collective] += group.size_bytes * group.per_step
        expected = {pair: size / steps for pair, size in sent.items() if size}
        assert pairs == pytest.approx(expected)
        assert found == pytest.approx({k: size / steps for k, size in buffers.items()})
