"""What a process knows of itself under every launcher, and reports of it."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.launch.process import Process, read_reports, report_line, this_process
from placer.launch.ranks import HostTable
from tests.texts import table


@pytest.mark.parametrize(*table("launch/process.yaml", "launchers"))
def test_launchers(environ, launcher, numbers):
    """Each launcher's own variables are read, not those it inherited."""
    process = this_process(environ)
    assert process.launcher == launcher
    assert [process.rank, process.world_size, process.local_rank] == numbers


def test_host():
    """The host is PLACER_HOST, else SLURMD_NODENAME, else the machine's, as scripts."""
    environ = {"HOSTNAME": "login", "SLURMD_NODENAME": "n1", "PLACER_HOST": "n2"}
    assert this_process(environ).host == "n2"
    del environ["PLACER_HOST"]
    assert this_process(environ).host == "n1"
    assert this_process({"HOSTNAME": "login"}).host == os.uname().nodename


@pytest.mark.parametrize(*table("launch/process.yaml", "gpus"))
def test_gpu(visible, local_rank, gpu):
    """The GPU is the only one seen, or the one at the local rank."""
    assert Process("n", local_rank=local_rank, visible=visible).gpu == gpu


@pytest.mark.parametrize("text", ["x", "-1", "1.0", "\u0663", "9" * 20])
def test_numbers_are_checked(text):
    """A rank that is no number is an error that names the variable."""
    with pytest.raises(InputError, match="RANK"):
        this_process({"RANK": text})


def test_host_table():
    """Whole names, a reported domain, a missing domain of one node only."""
    table = HostTable(["a", "b.x", "c.x", "c.y"])
    assert [table.find(h) for h in ("a", "a.z", "b", "b.x")] == [0, 0, 1, 1]
    assert [table.find(h) for h in ("c", "c.y", "d", "b.y")] == [None, 3, None, None]


small = st.integers(0, 9999)
maybe = st.none() | small


@st.composite
def processes(draw):
    names = st.from_regex(r"[a-z0-9-]{1,8}", fullmatch=True)
    return Process(
        host=draw(st.from_regex(r"[a-z][a-z0-9.-]{0,20}", fullmatch=True)),
        launcher=draw(st.sampled_from(["", "torchrun", "slurm"])),
        rank=draw(small),
        world_size=draw(maybe),
        local_rank=draw(maybe),
        visible=draw(st.none() | st.lists(names, min_size=1, max_size=4).map(tuple)),
        node_rank=draw(maybe),
        slurm_procid=draw(maybe),
        slurm_nodeid=draw(maybe),
    )


@given(
    st.lists(processes(), min_size=1, max_size=5),
    st.sampled_from(["", "0: ", "n1: ", "[1,0]<stdout>:", "\x1b[32mn1\x1b[0m: ", "\t"]),
    st.sampled_from(["\n", "\r\n", "", " trailing text\n", "\nsome other line\n"]),
)
def test_round_trip(jobs, before, after):
    """Every report comes back, with prefixes, other lines, or no line ends at all."""
    text = "".join(before + report_line(process) + after for process in jobs)
    found = read_reports(text, "out")
    assert found.processes == tuple(jobs)
    assert found.unreadable == ()


def test_report_is_plain():
    """One line of JSON with rank, host, local rank and GPU; unknown facts left out."""
    process = Process("n1", "env", 3, 8, 1, ("4", "6"))
    assert json.loads(report_line(process)) == {
        "format": "placer/report",
        "version": 1,
        "rank": 3,
        "host": "n1",
        "launcher": "env",
        "world_size": 8,
        "local_rank": 1,
        "visible": ["4", "6"],
        "gpu": "6",
    }
    with pytest.raises(InputError, match="SLURM_PROCID"):
        report_line(Process("n1"))


@pytest.mark.parametrize(*table("launch/process.yaml", "malformed"))
def test_malformed_reports_are_counted(rest):
    """A cut or odd report is counted with its line, the others are still read."""
    line = f'{{"format": "placer/report", "version": 1, {rest}'
    good = report_line(Process("n1", rank=0))
    found = read_reports(f"{good}\n{line}\n{good}\n", "out")
    assert len(found.processes) == 2
    assert found.unreadable == (2,)
    with pytest.raises(InputError, match="no report can be read in line 1"):
        read_reports(line, "out")


@given(st.text(max_size=200))
def test_other_text(text):
    """Text without reports is an error that says how to get some, never a crash."""
    with pytest.raises(InputError, match="there is no report"):
        read_reports(text, "out")


def test_a_report_that_nests_without_end():
    """It is malformed, as any other."""
    deep = '{"format": "placer/report", "version": 1, "x": ' + "[" * 100_000
    with pytest.raises(InputError, match="no report can be read in line 1"):
        read_reports(deep, "out")
