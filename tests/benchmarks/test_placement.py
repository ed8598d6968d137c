"""The placement benchmark runs from end to end on machines of a moment."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.attempt import PLACER, Attempt, Spec, Task, attempt
from benchmarks.cases import NAMES, case
from benchmarks.page import page
from benchmarks.placement import main
from benchmarks.results import Report, Result, Row, best_of
from benchmarks.run import attempts, specs, versions
from benchmarks.tables import case_table, label, percent, random_table
from placer.placement.check import violations
from placer.placement.placement import Placement
from tests.solve.solving import solve


def row(tool: str, value: float, **fields: object) -> Row:
    spec = Spec(tool, variant="replica-major" if tool == "orders" else "")
    made = Attempt(spec, value=value, crossings={"dp": [6, 1, 1]}, wall_s=1.0)
    return Row(replace(made, **fields), 1, value)  # type: ignore[arg-type]


def result(*others: Row, name: str = "X") -> Result:
    ours = row(PLACER, 110.0, lower_bound=100.0, wall_s=2.0, note="a | b; feasible")
    return Result(
        name,
        "hop-cost",
        8,
        16,
        2,
        {"tp": 1, "dp": 8},
        {"dp": 2.0},
        50.0,
        [ours, *others],
    )


@pytest.mark.slow
def test_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints a table, and writes the same as JSON and as a page."""
    output, text = tmp_path / "results.json", tmp_path / "page.md"
    few = ["--peers", "orders", "--seeds", "1", "--json", str(output)]
    assert main(["--instances", "S64", *few, "--page", str(text)]) == 0
    (found,) = results.read(output).results
    assert found.ours.value == found.ours.lower_bound == 263_296
    assert {r.best.spec.variant for r in found.others} == {
        "megatron-default",
        "replica-major",
    }
    assert "| **placer** | 263,296 | 0 | 1.000 |" in capsys.readouterr().out
    assert "Proved optimal: S64." in text.read_text()


def test_random_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """On random machines no order is better than placer, and the exit code says so."""
    assert main(["--random", "1", "--peers", "orders", "--seeds", "1"]) == 0
    assert "| megatron-default | 1 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--instances", "Z"],
        ["--peers", "magic"],
        ["--objective", "time", "--random", "3"],
    ],
)
def test_usage(arguments: list[str]) -> None:
    """Unknown names are usage errors."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)


def test_time_case() -> None:
    """The time case is the machine of B with real links, and placer keeps its rules."""
    topology, job = case("B", "time")
    assert (topology.num_gpus, job.world_size, job.parallelism.vp) == (8_728, 8_192, 8)
    assert job.require == {"tp": "node", "cp": "node"}
    assert [tier.scale_up for tier in topology.tiers] == [True, False, False]
    solution = solve(topology, job, time_limit=0)
    assert solution.objective == "time"
    assert violations(solution.placement, topology, job) == []
    with pytest.raises(KeyError):
        case("C", "time")


def test_every_name_is_a_case() -> None:
    """Every name of every objective is a case."""
    for objective, names in NAMES.items():
        for name in names:
            if name not in ("F", "G"):
                assert case(name, objective)[1].world_size


def test_attempt_scores_what_the_peer_said() -> None:
    """An order's value is the hop cost of that order, its edges are all counted."""
    topology, job = case("S64", "hop-cost")
    spec = Spec("orders", variant="replica-major")
    made = attempt(topology, job, spec, Task("S64", "hop-cost", 1.0, [spec]))
    assert (made.value, made.status, made.moved) == (263_296, "done", 0)
    assert sum(made.crossings["pp"]) == 3 * 16
    assert made.broken == []
    assert (
        violations(Placement.on_nodes(topology, topology.node_of_gpu), topology, job)
        == []
    )


def test_missing_peer_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that is not installed is reported as such."""
    monkeypatch.setattr("benchmarks.peers.metis.version", lambda: None)
    topology, job = case("S64", "hop-cost")
    spec = Spec("METIS")
    made = attempt(topology, job, spec, Task("S64", "hop-cost", 1.0, [spec]))
    assert made.status == "not installed"
    assert "METIS" not in versions()


def test_slow_attempt_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that says nothing is ended, and each attempt is said to have none."""
    monkeypatch.setattr(sys, "executable", str(Path(__file__).with_name("silent.sh")))
    task = Task("S64", "hop-cost", 0.05, [Spec("METIS", seed=n) for n in (0, 1)])
    told: list[Attempt] = []
    made = attempts(task, told.append)
    assert [one.status for one in made] == ["none in 0.05 s"] * 2
    assert told == made


def test_failure_is_a_result() -> None:
    """An attempt that raises is reported, and those after it are still made."""
    both = [Spec("orders", unit="nonsense"), Spec("orders", variant="replica-major")]
    first, second = attempts(Task("S64", "hop-cost", 60.0, both), lambda _: None)
    assert first.status == "failed: KeyError: 'nonsense'"
    assert second.status == "done"


def test_specs() -> None:
    """Seeds multiply settings and contractions; orders need one seed."""
    made = specs(["orders", "Scotch"], 2, ["rank", "tp"])
    counts = [
        sum(s.tool == tool for s in made) for tool in (PLACER, "orders", "Scotch")
    ]
    assert counts == [2, 6 * 2, 3 * 2 * 2]


def test_best_of() -> None:
    """The best valid attempt stands for its kind, however cheap a broken one is."""
    spec = Spec("METIS")
    made = [
        Attempt(spec, value=5.0, wall_s=1.0),
        Attempt(spec, value=4.0, broken=["tp"]),
        Attempt(spec, value=5.0, wall_s=0.5),
        Attempt(spec, status="failed"),
        Attempt(Spec("METIS", "tp"), status="failed"),
    ]
    first, second = best_of(made)
    assert (first.best, first.tries, first.worst) == (made[2], 3, 5.0)
    assert not second.is_done


def test_losses_are_told() -> None:
    """A better tool is in the table above placer and on the page as a loss."""
    report = Report("2 shared cores", {}, 60.0, [result(row("METIS", 105.0))])
    lines = list(case_table(report.results[0]))
    assert lines[2].startswith("| METIS | 105 | 4.762% | 1.100 | 2 |")
    assert r"a \| b; feasible" in lines[3]
    text = page(report)
    assert "* **X, hop-cost**: METIS (**-4.545%**)." in text
    assert "Not installed: orders" in text
    assert "nowhere" not in text


def test_gap_never_promises_too_much() -> None:
    """Gaps are rounded up; only equality is 0."""
    assert [percent(x) for x in (0.0, 1e-7, 0.01)] == ["0", "0.001%", "1.000%"]


def test_random_summary() -> None:
    """Better, equal and worse are counted per tool."""
    found = [
        result(row("METIS", value), name=f"random-{i}")
        for i, value in enumerate((100.0, 110.0, 121.0, 132.0))
    ]
    assert list(random_table(found))[2] == (
        "| METIS | 4 | 2 | 1 | 1 | +5.000% | +20.00% |"
    )


def test_earlier_rows_are_kept(tmp_path: Path) -> None:
    """A new run of one tool replaces its rows in the file and no others."""
    old = Report("c", {"METIS": "1"}, 60.0, [result(row("METIS", 120.0))])
    results.write(old, tmp_path / "old.json")
    ours = replace(result().rows[0], worst=111.0)
    new = Report("c", {}, 60.0, [replace(result(), rows=[ours])])
    merged = new.with_earlier(results.read(tmp_path / "old.json"))
    (found,) = merged.results
    assert [label(r.best.spec) for r in found.rows] == ["placer", "METIS"]
    assert found.rows[0].worst == 111.0
    assert merged.versions == {"METIS": "1"}
