"""Errors of a first run: one shape, and all that is wrong at once."""

import pytest

from tests.commands import refusal


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("--frob",), "placer"),
        (("place", "--gap", "x"), "placer place"),
        (("score",), "placer score"),
        (("topology", "show"), "placer topology show"),
        (("draw", "p.json", "traffic", "--zoom", "r1"), "placer draw"),
    ],
    ids=" ".join,
)
def test_usage_errors_are_as_others(words, command):
    """They begin with ``error:`` and end with a hint that can be typed."""
    first, last = refusal(*words).splitlines()
    assert first.startswith("error: ")
    assert last == f"  hint: {command} --help"


@pytest.mark.parametrize(
    "words",
    ["place", "allocate", "score launcher:slurm", "calibrate megatron-log:LOG"],
)
def test_faults_of_machine_and_job_are_told_together(tmp_path, words):
    """A bad machine does not hide what is wrong with the job."""
    machine, job = tmp_path / "machine.yaml", tmp_path / "job.yaml"
    machine.write_text("format: placer/topology\nversion: 1\nname: m\nbogus: 1\n")
    job.write_text("format: placer/job\nversion: 1\nname: j\nbogus: 1\n")
    log = tmp_path / "LOG"
    log.write_text(" iteration 1/ 9 | elapsed time per iteration (ms): 155.7 |\n" * 3)
    words = words.replace("LOG", str(log)).split()
    told = refusal(*words, "-t", machine, "-j", job)
    for path in (machine, job):
        assert f'{path}:4:1: unknown key "bogus"' in told
    gone = refusal(*words, "-t", f"{machine}.gone", "-j", f"{job}.gone")
    assert gone.count("cannot be read") == 2


def test_bad_values_of_options_are_told_together():
    """Each option with a bad value has a line, in the order typed, and one hint."""
    words = ("place", "--gap", "x", "--pin", "y", "--gpus", "0", "--effort", "z")
    *told, hint = refusal(*words).splitlines()
    assert [line.split("'")[1] for line in told] == [*words[1::2]]
    assert all(line.startswith("error: Invalid value for ") for line in told)
    assert hint == "  hint: placer place --help"


def test_a_range_is_told_in_words():
    """A number that is too small or too large is told what it may be."""
    found = refusal("place", "--gpus", "0", "--workers", "5000")
    assert "expected 1 or more, got 0" in found
    assert "expected 1 to 1,024, got 5000" in found
