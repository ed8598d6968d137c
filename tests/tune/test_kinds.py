"""Rows that differ, what is alike, the job's own kind, and how kinds were rated."""

import re
import shlex
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest

import placer
from placer.cost import DIFFERENCE
from placer.tune.kinds import MEMORY, RATED, differing, methods
from tests.commands import run
from tests.tune.cases import machine
from tests.tune.test_tuning import work

RUNS = Path(__file__).parents[2] / "benchmarks" / "choices.md"
FEWER = {"gpus": [16], "tp": [2], "cp": [1], "pp": [1, 2], "micro_batch": [1]}
FEW = {"tp": [1, 2, 4], "cp": [1, 2], "pp": [1, 2], "micro_batch": [1, 2]}


@pytest.fixture(scope="module")
def found():
    """Of a job with pipelines, whose best choices have none."""
    return placer.tune(machine(), work(), gpus=[16], top=5, **FEW)


def are_alike(one, other):
    """Whether nothing that the model can tell keeps two rows apart."""
    step, memory = (
        max(one[key], other[key]) / min(one[key], other[key]) - 1
        for key in ("step_time_s", "memory_bytes")
    )
    same = one["gpus"] == other["gpus"] and one["methods"] == other["methods"]
    return same and step <= DIFFERENCE and memory <= MEMORY


def test_no_two_rows_are_alike_and_there_are_as_many_as_asked_for(found):
    """Ties are folded: a row says how many are like it, and in what they differ."""
    rows = found.rows
    assert len([row for row in rows if not row["is_own_kind"]]) >= 4
    assert len(rows) >= 5
    assert not any(are_alike(*pair) for pair in combinations(rows, 2))
    folded = [row for row in rows if row["alike"]]
    assert folded
    for row in folded:
        assert all(len(values) > 1 for values in row["alike_in"].values())
        assert row["alike_in"]
        assert "etp" not in row["alike_in"]  # which follows tp
        assert f"stands for {row['alike']} more: " in found.summary()
    placed = found.found.placed
    for row, others in zip(found.found.rows, found.found.alike, strict=True):
        for one in others:
            assert one in placed
            longer = one.answer.step_time_s / row.answer.step_time_s - 1
            assert 0 <= longer <= DIFFERENCE
            less, more = sorted((one.memory, row.memory))
            assert more / less - 1 <= MEMORY


def test_the_best_of_the_job_s_own_kind_stands_beside(found):
    """It is marked, placed like the others, and named in the first sentences."""
    (own,) = [row for row in found.rows if row["is_own_kind"]]
    assert own["methods"] == found.to_dict()["own"]["methods"]
    choice = found.found.rows[0].choice._replace(pp=2, ep=2, sharding="hsdp")
    assert methods(choice) == ("sharded parameters", "pipelines", "expert groups")
    assert methods(choice._replace(pp=1, ep=1, sharding="zero1")) == ("ZeRO",)
    one = choice._replace(tp=2, etp=2, sharding="hsdp", shard_size=4)
    other = choice._replace(tp=4, etp=4, sharding="zero1", shard_size=0)
    rows = [SimpleNamespace(choice=each) for each in (one, other)]
    differ = {"tp": [2, 4], "sharding": ["hsdp 4", "zero1"]}
    assert differing(rows, has_experts=False) == differ
    assert differing(rows, has_experts=True) == differ | {"etp": [2, 4]}
    assert own["parallelism"]["pp"] == 2
    number = found.rows.index(own) + 1
    text = found.summary()
    assert re.search(rf"^{number}\\*", text, re.MULTILINE)
    assert f"own kind is row {number}:" in " ".join(text.split())
    assert found.job_of(number - 1).parallelism.pp == 2


def test_flags_to_change_make_the_row_out_of_the_job(found):
    """Those of the job, changed and left out as the text says, are those of the row."""
    text = found.summary(place=["  placer place -t m -j script"])
    assert text.endswith("next\n  placer place -t m -j script")
    changed, gone = re.search(
        r"To change for row 1, flags of megatron:\n((?:  .*\n)+)"
        r"(?:and to leave out:\n((?:  .*\n)+))?",
        text,
    ).groups()
    flags = of(found.to_dict()["own"]["flags"]) | of(changed.split())
    for name in of((gone or "").split()):
        del flags[name]
    assert flags == of(found.rows[0]["flags"])
    few = {"gpus": [16], "top": 1, "tp": 2, "cp": 1, "pp": 1, "micro_batch": 1}
    best = placer.tune(machine(), found.job, **few).best
    again = placer.tune(machine(), best, **few)
    assert "Row 1 has the flags of the job: nothing to change" in again.summary()
    only = {"recompute": "none", "sharding": again.rows[0]["sharding"]}
    assert placer.tune(machine(), best, **few, **only).to_dict()["gain"] is None


def of(words):
    """Flags by name, with their values."""
    names = [i for i, word in enumerate(words) if word.startswith("--")]
    ends = [*names[1:], len(words)]
    return {words[i]: words[i + 1 : end] for i, end in zip(names, ends, strict=True)}


def test_how_kinds_were_rated_is_what_was_found():
    """The median and the most of the tables of published choices, by kind."""
    shares = {key: [] for key in RATED}
    for line in RUNS.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if behind := re.match(r"[\d.]+(?=%)", cells[-1]):
            ran, best = (cells[1], cells[3]) if len(cells) == 6 else cells[1:3]
            sharded = "zero3" in best or "hsdp" in best
            shares["ep " in ran, sharded].append(float(behind[0]) / 100)
    for key, found in RATED.items():
        assert found.runs == len(shares[key])
        assert found.median == pytest.approx(median(shares[key]), abs=5e-5)
        assert found.most == pytest.approx(max(shares[key]), abs=5e-5)


SCRIPT = """torchrun --nproc_per_node 8 pretrain_gpt.py
 --num-layers 8 --hidden-size 2048 --ffn-hidden-size 8192 --num-attention-heads 16
 --seq-length 2048 --swiglu --vocab-size 32000 --bf16
 --tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 32"""


def test_the_command_that_follows_runs_as_it_is_printed(tmp_path, monkeypatch):
    """A script is read again, once its flags are changed; a preset's job is written."""
    monkeypatch.chdir(tmp_path)
    Path("pretrain.sh").write_text(SCRIPT.replace("\n", ""))
    few = ["--tp", "1,2", "--pp", "1", "--cp", "1", "--recompute", "none"]
    limits = ["--top", "1", "--memory", "80GB", *few]
    machine = ["-t", "node:2 gpu:4", "--gpu", "h100"]
    zero1, zero3 = ["--sharding", "zero1"], ["--sharding", "zero3"]
    quick = ["--effort", "quick"]
    asked = ["tune", "-q", *machine, *limits, "--gpus", "8", "-j"]
    text = run(*asked, "megatron:pretrain.sh", *zero1).stdout
    assert "once the flags are changed in pretrain.sh" in text
    assert follows(text)[-4:] == ["--gpu", "h100", "-o", "plan.json"]
    run(*follows(text), *quick)
    assert Path("plan.json").exists()
    text = run(*asked, "quickstart", *zero1).stdout
    assert "after this command with --job-output job.yaml" in text
    text = run(*asked, "quickstart", *zero1, "--job-output", "degrees.yaml").stdout
    assert "degrees.yaml" in follows(text)
    run(*follows(text), *quick)
    without = run(*asked, "megatron:pretrain.sh", "--framework", "jax", *zero3).stdout
    assert "once the flags" not in without


def follows(text):
    """Words of the command at the end of a text, but for the program."""
    lines = text.replace("\\\n", " ").splitlines()
    return shlex.split(lines[-1])[1:]


def test_a_kind_that_is_rated_too_well_may_save_nothing(found, monkeypatch):
    """The interval reaches as far down as validation missed layouts of that kind."""
    ends = []
    for miss in (0.0, 0.05, 5.0):
        of_all = {key: one._replace(median=miss) for key, one in RATED.items()}
        monkeypatch.setattr("placer.tune.kinds.RATED", of_all)
        found = replace(found)  # nothing that it knows already
        told = found.to_dict()
        low, high = told["gain"]["saved_s_interval"]
        assert low <= told["gain"]["saved_s"] <= high
        own, best = told["own"]["step_time_s"], told["rows"][0]["step_time_s"]
        assert told["gain"]["saved_s"] == pytest.approx(own - best)
        ends.append(low)
        assert (": maybe nothing." in found.summary()) == (ends[-1] <= 0)
    assert ends == sorted(ends, reverse=True)
    assert ends[-1] < 0


def test_much_that_is_assumed_is_warned_of(found):
    """60 ms of a step that is short are told, and none where the job says its own."""
    assert "of the step" not in found.summary()
    short = replace(found.job, compute=replace(found.job.compute, fixed_time=None))
    short = placer.tune(machine(), short, top=1, **FEWER)
    share = 0.06 / short.rows[0]["step_time_s"]
    assert share > 0.05
    assert f"warning: that is {share:.0%} of the step" in short.summary()
