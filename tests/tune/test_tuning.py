"""What `tune` gives back: rows, sentences, fronts, a picture, what a stop leaves."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from random import Random
from xml.etree import ElementTree as Xml

import pytest

import placer
from placer.base.errors import InputError
from placer.cost.footprint.stages import footprint
from placer.documents import parse_document
from placer.job.axes import Parallelism
from placer.job.memory import Memory
from placer.job.parallel import DataParallel, Overlap
from placer.job.read import decode_job
from placer.job.write import to_document
from placer.report.tune_table import tune_text
from placer.report.tune_words import ties, why_not
from placer.tune.choice import Choice
from placer.tune.found import own_choice
from placer.tune.plot import tune_plot
from placer.tune.space import Space
from tests.api.test_islands import machine as islands
from tests.texts import table
from tests.tune.cases import GB, job, machine

FEW = {"tp": [1, 2], "cp": [1], "pp": [1, 2], "micro_batch": [1, 2]}
SVG = "{http://www.w3.org/2000/svg}"


def work():
    """A dense job that would run with tp 2 and pp 2."""
    axes = Parallelism(tp=2, etp=2, pp=2, dp=4)
    return replace(job(Random(1)), parallelism=axes, micro_batches=4)


@pytest.fixture(scope="module")
def found():
    """On 8 and 16 GPUs, with what needs less memory."""
    return placer.tune(machine(), work(), gpus=[8, 16], slack=0.5, **FEW)


def test_rows_are_plain_data(found):
    """JSON as they are; a line of CSV each; HTML with every cell escaped."""
    content = found.to_dict()
    assert json.loads(json.dumps(content)) == content
    (first, *_), batch = content["rows"], content["global_batch"]
    tokens = batch * work().sequence / first["step_time_s"] / first["gpus"]
    assert first["tokens_per_s_per_gpu"] == pytest.approx(tokens)
    assert len(found.to_csv().splitlines()) == len(found.rows) + 1
    assert found._repr_html_().count("<tr>") == len(found.rows) + 1
    text = repr(found)
    assert text.startswith("<placer.Tuning: ")
    assert "\n" not in text
    assert found.summary().splitlines()[0] in " ".join(text.split())


def test_the_best_with_fewer_gpus_and_less_memory(found):
    """A row of a front is the best of its own search; none beats another in both."""
    fronts = found.to_dict()["fronts"]
    assert [row["gpus"] for row in fronts["gpus"]] == [16, 8]
    alone = placer.tune(machine(), work(), gpus=[8], top=1, **FEW)
    assert fronts["gpus"][1]["step_time_s"] == alone.rows[0]["step_time_s"]
    front = fronts["memory"]
    assert len(front) > 2
    for row, following in pairwise(front):
        assert following["memory_bytes"] < row["memory_bytes"]
        assert following["step_time_s"] > row["step_time_s"]
    less = front[0]["memory_bytes"] - 1
    again = placer.tune(machine(), work(), gpus=[8, 16], memory=less, top=1, **FEW)
    step = again.rows[0]["step_time_s"]
    assert step == pytest.approx(front[1]["step_time_s"], rel=1e-12)
    assert front[-1]["step_time_s"] <= front[0]["step_time_s"] * 1.5


def test_the_job_s_own_degrees(found):
    """They are placed as they are, on as many GPUs as were asked for."""
    own = found.to_dict()["own"]
    assert own["parallelism"] | {"tp": 2, "pp": 2, "dp": 4} == own["parallelism"]
    placed = placer.place(found.machine, found.job, effort="quick")
    assert own["step_time_s"] == pytest.approx(placed.score["step_time_s"])
    share = 1 - found.rows[0]["step_time_s"] / own["step_time_s"]
    assert f"{100 * share:.1f} % faster" in " ".join(found.summary().split())
    explained = " ".join(found.summary(explain=True).split())
    assert "The job's own choice (tp 2, pp 2, dp 4) takes" in explained
    best = found.job_of(0)
    again = placer.tune(machine(), best, gpus=[best.world_size], top=1, **FEW)
    assert "These are the job's own degrees." in repr(again)


def test_own_degrees_that_are_none():
    """Those that fit no number of GPUs, or lack memory, say so."""
    assert own_choice(work(), Space((8, 16), 16)) == Choice(
        tp=2, etp=2, pp=2, dp=4, micro_batches=4, sharding="zero1"
    )
    assert "takes the GPUs asked for" in own_choice(work(), Space((6,), 16))
    assert "on 3 GPUs" in own_choice(work(), Space((3,), 16))
    few = placer.tune(machine(), work(), gpus=[2], top=1, **FEW | {"pp": [1]})
    assert "cannot be used: a replica has 4 ranks" in " ".join(few.summary().split())
    assert own_choice(work(), Space((), 16, at_most=15)).dp == 2
    experts = replace(work(), parallelism=Parallelism(tp=2, ep=8, dp=4))
    assert own_choice(experts, Space((8,), 16)).ep == 8
    assert own_choice(experts, Space((6,), 12)).startswith("ep 8 x etp 1 does not")
    plain = replace(work(), data_parallel=DataParallel(sharding="ddp"))
    limit = footprint(plain).total - 1
    tight = placer.tune(machine(), plain, gpus=[16], memory=limit, top=1, **FEW)
    own = tight.to_dict()["own"]
    assert own["status"] == "infeasible"
    assert "of memory needed" in own["error"]
    assert "cannot be used" in tight.summary()


def row(step, **changes):
    """A row as the report takes it."""
    sizes = {"tp": 2, "cp": 1, "ep": 1, "etp": 2, "pp": 2, "vp": 1, "dp": 4}
    usual = {"parallelism": sizes, "gpus": 16, "micro_batch": 1, "micro_batches": 4}
    usual |= {"sharding": "zero1", "shard_size": 0, "recompute": "none"}
    usual |= {"step_time_s": step, "tokens_per_s_per_gpu": 100.0}
    usual |= {"memory_bytes": 50 * GB, "restart_bytes": GB, "scale_up_domains": 2}
    usual |= {"parts_s": {"compute": 0.9, "bubble": step - 0.9}}
    return usual | changes


def test_what_breaks_ties():
    """Rows within the noise, told apart by what differs alone."""
    rows = [
        row(1.0),
        row(1.004, memory_bytes=30 * GB, restart_bytes=GB / 2),
        row(1.009, scale_up_domains=1),
        row(1.02, memory_bytes=GB),
    ]
    assert ties(rows) == (
        "Rows 1 to 3 are within the noise of the model (1%). Of these row 2 leaves the "
        "most memory free (30 GB needed) and has the least to read after a failure "
        "(500 MB a rank); row 3 touches the fewest scale-up domains (1)."
    )
    assert ties(rows[::3]) == ""
    assert ties(rows[:2]).startswith("Rows 1 and 2 are within")
    assert ties([row(1.0), row(1.0)]).endswith("model (1%).")


def test_why_another_is_worse():
    """What grows with what changed it, then memory."""
    sizes = row(1.0)["parallelism"] | {"pp": 4, "dp": 2}
    parts = {"compute": 0.9, "bubble": 0.3}
    other = row(1.2, parallelism=sizes, parts_s=parts, memory_bytes=40 * GB)
    assert why_not(row(1.0), other, "Row 2") == (
        "Row 2 (tp 2, pp 4, dp 2) takes 200 ms more, 20 %: bubble +200 ms (pp 4, not "
        "2). It needs 40 GB of memory, 10 GB less."
    )
    parts = {"compute": 1.1, "bubble": 0.1}
    for mine, cause in (("none", "recompute mlp, not none"), ("full", "another size")):
        longer = row(1.2, recompute="mlp", parts_s=parts)
        assert f"{cause})" in why_not(row(1.0, recompute=mine), longer, "Row 2")


def test_the_picture(found):
    """Two panels, a point a choice, own degrees apart, a title in both themes."""
    for theme in ("auto", "light", "dark"):
        root = Xml.fromstring(tune_plot(found, theme))
        panels = [g for g in root.findall(f"{SVG}g") if g.get("class") == "panel"]
        assert len(panels) == 2
        for panel in panels:
            points = [e for e in panel.iter() if "point" in (e.get("class") or "")]
            assert all(point.find(f"{SVG}title") is not None for point in points)
            assert len(panel.findall(f"{SVG}polyline")) == 1
            of_gpus = panel is panels[1]
            titles = [point.findtext(f"{SVG}title") or "" for point in points]
            assert all((" GPUs, " in title) == of_gpus for title in titles)
        texts = [text.text for text in root.findall(f"{SVG}text")]
        assert texts == [
            "Step time against memory and GPUs: small",
            "placed too",
            "none is better in both",
            "the job's own degrees",
        ]


@pytest.mark.parametrize("own", [True, False])
def test_a_stop_right_after_the_choices_were_listed_has_a_row(own):
    """The job's own degrees, or where a list leaves them out one that fits.

    No bound is above what another choice could have.
    """
    states, asked = [], FEW | {"gpus": [16], "tp": [1, 2, 4] if own else [4]}

    def is_listed():
        return any(state.least_s > 0 for state in states)

    stops = {"stop": is_listed, "progress": states.append}
    cut = placer.tune(machine(), work(), **stops, **asked)
    placed = {row["parallelism"]["tp"] for row in cut.placed_rows}
    assert placed
    assert (work().parallelism.tp in placed) == own
    whole = placer.tune(machine(), work(), top=1, **asked)
    assert whole.is_proved
    assert cut.lower_bound_s <= whole.rows[0]["step_time_s"] * (1 + 1e-9)
    assert cut.is_proved or "can be better by more than" in cut.proof


@pytest.mark.parametrize("own", ["full", "selective"])
def test_the_chosen_job_is_a_job(own):
    """Whatever the job computed again: written and read it is the same, its plan is."""
    memory = Memory(recompute=own, recompute_modules=("mlp",) * (own == "selective"))
    if own == "full":
        memory = Memory(recompute="full", recompute_method="block")
    start = replace(work(), memory=memory, description="its first degrees")
    few = FEW | {"recompute": ["none"]}
    found = placer.tune(machine(), start, gpus=[16], top=4, **few)
    for index in range(4):
        chosen = found.job_of(index)
        text = json.dumps(to_document(chosen))
        assert decode_job(parse_document(text, "job.json")).sha256 == chosen.sha256
        assert chosen.description.endswith("chosen by placer tune")
    placer.check(placer.place(found.machine, found.best, effort="quick").plan)


@pytest.mark.parametrize(
    *table("tune/tuning.yaml", "nothing_that_is_asked_for_is_passed_over")
)
def test_nothing_that_is_asked_for_is_passed_over(asked, message):
    """What model or framework lacks is said, not read as if it were not there."""
    with pytest.raises(InputError, match=re.escape(message)):
        placer.tune(machine(), work(), gpus=[16], **asked)


@pytest.mark.parametrize(
    *table("tune/tuning.yaml", "exchanges_of_experts_hide_where_megatron_lets_them")
)
def test_exchanges_of_experts_hide_where_megatron_lets_them(changes, hides):
    """Interleaved pipelines, and no layers or experts computed again."""
    given = replace(job(Random(4)), overlap=Overlap(ep=True))
    choice = Choice(dp=2, ep=2, **changes)
    assert choice.applied(given).overlap.ep is hides
    assert not choice.applied(replace(given, overlap=Overlap(ep=False))).overlap.ep
    # A job that does so itself says that its framework can.
    does = replace(given, memory=Memory(recompute="full"))
    assert choice.applied(does).overlap.ep


def test_flags_that_surprise_are_explained(found):
    """There are none for JAX; Megatron-LM wants a size of experts that are none."""
    content = found.to_dict()
    assert "refuses this order" not in tune_text(content)
    (first, *others) = content["rows"]
    size = first["flags"].index("--expert-tensor-parallel-size") + 1
    flags = [*first["flags"][:size], "64", *first["flags"][size + 1 :]]
    asked = {**content, "rows": [{**first, "flags": flags}, *others]}
    assert "The model has no experts" in tune_text(asked)
    none = {**content, "framework": "jax", "rows": [{**first, "flags": []}, *others]}
    said = " ".join(tune_text(none).split())
    assert "No flags of jax are known for row 1; --job-output" in said


def test_hosts_may_have_islands():
    """Bounds know the machine by its islands, as placements do."""
    machine = islands({"gpus": [2, 1]}, {"gpus": [2, 1]})
    found = placer.tune(machine, "quickstart", gpus=[4], memory=400e9, top=1)
    assert found.lower_bound_s <= found.rows[0]["step_time_s"] * (1 + 1e-9)
