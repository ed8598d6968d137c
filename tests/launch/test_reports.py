"""Reports survive whatever a launcher prints around them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.launch.process import Process
from placer.launch.reports import read_reports, report_line

small = st.integers(0, 9999)
maybe = st.none() | small


@st.composite
def processes(draw: st.DrawFn) -> Process:
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
def test_round_trip(jobs: list[Process], before: str, after: str) -> None:
    """Every report comes back, with prefixes, other lines, or no line ends at all."""
    text = "".join(before + report_line(process) + after for process in jobs)
    found = read_reports(text, "out")
    assert found.processes == tuple(jobs)
    assert found.unreadable == ()


def test_report_is_plain() -> None:
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


HEAD = '{"format": "placer/report", "version": 1, '


@pytest.mark.parametrize(
    "line",
    [
        HEAD + '"rank": 1, "host": "n',
        HEAD + '"rank": -1, "host": "n"}',
        HEAD + '"rank": 1.0, "host": "n"}',
        HEAD + '"rank": true, "host": "n"}',
        HEAD + '"host": "n"}',
        HEAD + '"rank": 1, "host": ""}',
        HEAD + '"rank": 1, "host": "a\\u001bb"}',
        HEAD + '"rank": 1, "host": "n", "visible": "0"}',
        HEAD + '"rank": 1, "host": "n", "visible": [0]}',
        HEAD + '"rank": 1, "host": "n", "launcher": 3}',
        '{"format": "placer/report", "version": 2, "rank": 1, "host": "n"}',
        HEAD + '"x": ' + "[" * 100_000,
    ],
)
def test_malformed_reports_are_counted(line: str) -> None:
    """A cut or odd report is counted with its line, the others are still read."""
    good = report_line(Process("n1", rank=0))
    found = read_reports(f"{good}\n{line}\n{good}\n", "out")
    assert len(found.processes) == 2
    assert found.unreadable == (2,)
    with pytest.raises(InputError, match="no report can be read in line 1"):
        read_reports(line, "out")


@given(st.text(max_size=200))
def test_other_text(text: str) -> None:
    """Text without reports is an error that says how to get some, never a crash."""
    with pytest.raises(InputError, match="there is no report"):
        read_reports(text, "out")
