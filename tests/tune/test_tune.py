"""`tune`: the best of all legal degrees, on any engine, and what it refuses."""

import json
from dataclasses import replace
from random import Random

import pytest

import placer
from placer.api.tune import plan_of
from placer.base.budget import HostBudget
from placer.base.errors import InfeasibleError, InputError
from placer.job.axes import Parallelism
from placer.job.rules import Pin, Rules
from placer.tune.evaluate import Answer
from placer.tune.least import Least
from placer.tune.search import AT_A_TIME, ROUNDS, Search
from placer.tune.space import Legal, Space
from placer.workers.pool import Pool
from tests.commands import data, refusal, run
from tests.texts import table
from tests.tune.cases import job, machine


def test_the_same_on_any_number_of_processes():
    """Rows, counts and proof do not depend on the engine."""
    topology, work = machine(), job(Random(3))
    asked = {"gpus": [8], "tp": [2, 4], "recompute": "none", "top": 3}
    first = placer.tune(topology, work, **asked)
    second = placer.tune(topology, work, **asked, engine=Pool(2))
    assert first.to_dict() == second.to_dict()


def test_fewer_gpus_where_all_are_of_no_use():
    """A batch of 4 on 9 GPUs: without a number, what cannot be used is left."""
    work = replace(job(Random(1)), micro_batches=4)
    found = placer.tune(machine("node:9 gpu:1"), work, pp=[1], tp=[1], cp=[1])
    assert found.rows[0]["gpus"] == 4
    said = " ".join(found.summary().split())
    assert " on 4 of 9 GPUs: " in said
    assert "No choice that uses more GPUs is faster." in said


@pytest.mark.parametrize(
    ("framework", "mode"), [("megatron", "core_attn"), ("torchtitan", "op")]
)
def test_selective_is_what_the_framework_means_by_it(framework, mode):
    """Jobs say ``recompute: selective``; tune takes the word too."""
    asked = {"framework": framework, "gpus": 16, "tp": 4, "pp": 1, "cp": 1, "top": 1}
    found = placer.tune(machine(), job(Random(3)), recompute="selective", **asked)
    assert [row["recompute"] for row in found.rows] == [mode]


def test_what_is_wrong_is_said():
    """Memory that is none, a framework, GPUs and hosts that are not there."""
    work = job(Random(0))
    with pytest.raises(InputError, match="memory") as failure:
        placer.tune(machine(), work, framework="megatro", gpus=[64], memory=0.0)
    keys = {problem.key for problem in failure.value.problems}
    assert keys == {"memory", "framework", "gpus"}
    wrong = {"recompute": ["moe_atc"], "sharding": ["zero2"], "cp": [0], "top": 0}
    with pytest.raises(InputError) as failure:
        placer.tune(machine(), work, slack=-1.0, memory=float("nan"), **wrong)
    keys = {problem.key for problem in failure.value.problems}
    assert keys == {*wrong, "slack", "memory"}
    with pytest.raises(InputError, match="a workload has several jobs"):
        placer.tune("dgx-h100-4x8", "rl-weights-qwen3")
    with pytest.raises(InputError, match=r"no model.*\n.*name of a preset"):
        placer.tune("dgx-h100-4x8", "dlrm-tables")
    with pytest.raises(InputError, match="gpus: expected at least 1, got 0"):
        placer.tune("dgx-h100-4x8", "quickstart", gpus=0)
    pinned = replace(work, rules=Rules(pin=(Pin((0,), ("nowhere",)),)))
    with pytest.raises(InputError, match="nowhere"):
        placer.tune(machine(), pinned, gpus=[16])
    with pytest.raises(InfeasibleError, match="heads that tp does not divide"):
        placer.tune(machine(), work, tp=[16], gpus=[16])
    least = r"the least need is 3\.081 GB\n  hint: that is tp 8, pp 2"
    with pytest.raises(InfeasibleError, match=least):
        placer.tune(machine(), work, gpus=[16], memory=1e8)


def test_what_is_left_out_does_not_depend_on_how_many_rows_are_shown():
    """Rows that are looked at for the table alone were beaten before."""
    asked = {"gpus": [8], "memory": 5e9, "pp": [1, 2]}
    few, many = (
        placer.tune(machine(), job(Random(3)), top=top, **asked).to_dict()
        for top in (1, 6)
    )
    assert len(many["rows"]) > len(few["rows"])
    assert few["pruned"]["memory"]
    assert few["pruned"] == many["pruned"]
    assert few["considered"] > sum(few["pruned"].values())


SMALL = ("tune", "-q", "-t", "dgx-h100-32", "-j", "quickstart", "--gpus", "16")
FEW = (
    *("--pp", "1", "--cp", "1", "--micro-batch", "1"),
    *("--recompute", "none", "--sharding", "zero1"),
)


def test_the_command_writes_plan_job_and_rows(tmp_path):
    """JSON as the contract says; the plan is of the best row and passes its check."""
    plan_file, file = tmp_path / "plan.json", tmp_path / "job.json"
    command = (*SMALL, "-o", plan_file, "--top", 2, "--tp", "2,4", *FEW)
    found = data(*command, "--job-output", file)
    best = found["rows"][found["best"]]
    assert {"gpus", "global_batch", "considered", "pruned", "proof"} <= set(found)
    assert {"rules", "memory", "bound"} <= set(found["pruned"])
    chosen = placer.read_job(file)
    assert chosen.parallelism.dp == best["parallelism"]["dp"]
    plan = placer.read_plan(plan_file)
    assert plan.score["step_time_s"] == pytest.approx(best["step_time_s"])
    assert plan.solver["deterministic"]
    table = run(*command, "--explain").stdout
    assert "optimal under the model" in " ".join(table.split())
    file = tmp_path / "job.yaml"
    rows = run(*command, "--job-output", file, "--format", "csv").stdout
    assert file.read_text(encoding="utf-8").startswith("format: placer/job\n")
    assert placer.read_job(file).sha256 == chosen.sha256
    assert len(rows.splitlines()) == 3


@pytest.mark.parametrize(
    ("option", "format"), [("-o", "placer/plan"), ("--job-output", "placer/job")]
)
def test_what_goes_to_stdout_stands_there_alone(option, format):
    """Plan or job can be piped on; no table is before or after it."""
    written = run(*SMALL, "--tp", "4", *FEW, option, "-").stdout
    assert json.loads(written)["format"] == format


def test_a_row_is_looked_for_and_never_another(tmp_path):
    """Row 3 of two that were asked for is found; where there is none, no file."""
    plan = tmp_path / "plan.json"
    command = (*SMALL, "--top", "2", "--pp", "1", "--cp", "1", "-o", plan)
    third = data(*command, "--row", "3")["rows"][2]
    step_s = placer.read_plan(plan).score["step_time_s"]
    assert step_s == pytest.approx(third["step_time_s"])
    plan.unlink()
    few = ("--format", "json", "--tp", "4", *FEW[4:])
    assert "rows, and none 99" in run(*command, *few, "--row", "99", code=2).stderr
    assert not plan.exists()


def test_fewer_rows_than_asked_for_say_that_time_was_up():
    """Where there are no more choices nothing is said."""
    work = replace(job(Random(3)), parallelism=Parallelism(dp=2))
    few = {"gpus": [8], "tp": [1], "cp": [1], "sharding": "ddp", "recompute": "none"}
    few["micro_batch"] = [1]
    found = placer.tune(machine(), work, top=1000, **few)
    assert not found.to_dict()["is_short"]
    cut = replace(found, found=replace(found.found, is_short=True))
    for one, is_said in ((found, False), (cut, True)):
        assert ("Time was up before more choices" in one.summary()) == is_said
    early = placer.tune(machine(), work, top=1000, stop=lambda: True, **few)
    assert early.to_dict()["is_short"]


@pytest.mark.parametrize(
    "cut", [{"stop": lambda: True}, {"time_limit": 0.0}], ids=["stop", "limit"]
)
def test_without_any_time_there_is_an_answer(cut):
    """The job's own degrees are placed, and nothing is claimed of them."""
    found = placer.tune(machine(), job(Random(0)), gpus=[16], **cut)
    assert found.rows[0]["step_time_s"] > 0
    assert not found.is_proved
    assert found.lower_bound_s == 0
    assert found.proof.startswith("nothing is proved")


def test_budgets_hold():
    """A tuned job keeps the machine's budgets, and is as large as they allow."""
    most = HostBudget("all", frozenset(machine().node_names), gpus=9, replicas=9)
    topology, work = replace(machine(), budgets=(most,)), job(Random(0))
    found = placer.tune(topology, work, top=2, cp=[1])
    assert {row["gpus"] for row in found.placed_rows} <= set(range(1, 10))
    assert found.rows[0]["gpus"] == 8


def test_a_model_alone_needs_a_batch_and_no_way_to_cut_it(tmp_path):
    """What `tune` chooses is not asked for; the samples of a step are."""
    config = {"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024}
    config |= {"num_attention_heads": 8, "num_hidden_layers": 4, "vocab_size": 32000}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    command = ("tune", "-q", "-t", "node:2 gpu:2", "-j", f"hf:{file}", "--top", 1)
    command += ("--tflops", 100, "--set", "job.sequence=1024", "--memory", "80GB")
    command += FEW[-4:]
    told = refusal(*command)
    assert "hint: --global-batch N" in told
    assert "micro_batch" not in told
    told = run(*command, "--global-batch", 4).output
    assert "--global-batch-size 4" in told.replace("\n  ", " ")


JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, dp: 4}
model: {layers: 4, hidden: 512, ffn: 1024, heads: 8, kv_heads: 8, vocab: 32000}
sequence: 1024
micro_batches: MICRO
compute: {tflops_per_gpu: 400}
"""


def said(folder, *options, micro="4", code=2):
    """What stands on stderr, in one line."""
    file = folder / "job.yaml"
    file.write_text(JOB.replace("MICRO", micro))
    command = ("tune", "-q", "-t", "node:2 gpu:4", "-j", file, "--memory", "80GB")
    return " ".join(refusal(*command, *options, code=code).split())


@pytest.mark.parametrize(*table("tune/tune.yaml", "what_cannot_be_answered"))
def test_what_cannot_be_answered(tmp_path, options, micro, code, told, silent):
    """Every problem is said, and what to do; what would follow from it is not."""
    text = said(tmp_path, *options, micro=micro, code=code)
    assert all(words in text for words in told)
    assert not silent or silent not in text


def test_memory_that_nobody_says_is_assumed_aloud():
    """That of the usual GPU of such hosts, in text, JSON and the plan of a row."""
    asked = {"gpus": [16], "tp": [4], "recompute": "none", "top": 1}
    found = placer.tune(machine(memory=0.0), job(Random(3)), **asked)
    (entry,) = (e for e in found.to_dict()["assumed"] if e["key"] == "gpu.memory")
    assert (entry["value"], entry["option"]) == (81559 * 2**20, "--memory SIZE")
    words = "85.52 GB of memory a GPU, that of an H100, the usual GPU (--memory SIZE)"
    assert words in " ".join(found.summary().split())
    assert entry in plan_of(found, 0).assumed
    said = placer.tune(machine(memory=0.0), job(Random(3)), memory=80e9, **asked)
    assert "gpu.memory" not in {e["key"] for e in said.to_dict()["assumed"]}


SCRIPT = (
    "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
    "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 32000 "
    "--micro-batch-size 1 --global-batch-size 4\n"
)


def test_a_batch_that_gpus_do_not_share_is_shared_by_fewer(tmp_path):
    """Other degrees share it: eight GPUs train four samples with tp 2 or more."""
    file = tmp_path / "train.sh"
    file.write_text(SCRIPT)
    command = ("tune", "-t", "node:2 gpu:4", "-j", f"megatron:{file}", "--top", 1)
    limits = ("--gpus", 8, "--memory", "80GB", "--tflops", 300, *FEW[-4:])
    done = run(*command, *limits, "--format", "json")
    found = json.loads(done.stdout)
    assert (found["global_batch"], found["rows"][0]["gpus"]) == (4, 8)
    assert "its own degrees are those on 4 GPUs" in done.stderr


# What is looked at first, by questions that are answered here.


def _legal(work):
    assert work.model is not None
    return Legal(work, work.model, Space((16,), work.micro_batches))


def _search(work, run, stop):
    legal = _legal(work)
    return Search(legal, Least(machine(), work, legal.model), 80e9, run, stop)


def test_a_search_that_is_cut_short_has_an_answer():
    """Links far worse than the cheap bounds keep all choices from their turn."""
    asked = []

    def run(questions):
        asked.extend(questions)
        return [(i, Answer(100.0, 101.0)) for i in range(len(questions))]

    most = (ROUNDS + 4) * AT_A_TIME
    found = _search(job(Random(3)), run, lambda: len(asked) > most).best(1)
    assert [question.wanted for question in asked].count("placement") == 1
    assert found.rows


def test_own_degrees_whose_placement_was_broken_off_are_the_answer():
    """Not some other choice: they are placed once more, in a hurry."""
    asked = []

    def run(questions):
        asked.extend(questions)
        return [(0, Answer(100.0, 101.0))] if questions[0].hurry else []

    work = job(Random(3))
    legal = _legal(work)
    least = Least(machine(), work, legal.model)
    own = legal.variants(max(legal.shapes(), key=least.work_s))[-1]  # the last in line
    found = _search(work, run, lambda: bool(asked)).best(1, own=own)
    assert [question.choice for question in asked] == [own, own]
    assert [row.choice for row in found.rows] == [own]
