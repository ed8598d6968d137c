"""Results show themselves: one line each, HTML for notebooks, rows for tables."""

import json
import re
from typing import get_args
from xml.etree import ElementTree as Xml

import pytest

import placer
from placer.documents.keys import keys_of
from placer.draw.picture import PictureName
from placer.placement.inputs import inputs_of
from placer.placement.score import (
    Hop,
    HotLink,
    MemoryBytes,
    Operation,
    Score,
    SlowHost,
    WorstGroup,
)

MACHINE = """
format: placer/topology
version: 1
name: <b>two & racks</b>
tiers:
  - {name: node, size: 8, bandwidth: 450GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 50GB/s, latency: 4us}
  - {name: cluster, bandwidth: 50GB/s, latency: 8us, oversubscription: 4}
nodes:
  - {names: "h[1,3]", rack: a}
  - {names: "h[2,4]", rack: b}
"""
JOB = """
format: placer/job
version: 1
name: small
parallelism: {tp: 8, pp: 2, dp: 2, order: tp-cp-ep-pp-dp}
model: {layers: 8, hidden: 2048, ffn: 8192, heads: 16, vocab: 32000}
sequence: 2048
micro_batches: 4
compute: {tflops_per_gpu: 400}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "machine.yaml").write_text(MACHINE)
    (folder / "job.yaml").write_text(JOB)
    machine = placer.read_topology(folder / "machine.yaml")
    return placer.place(machine, folder / "job.yaml", hosts="h[1-4]")


@pytest.fixture(scope="module")
def shown(found):
    """One of everything that shows itself, by its name."""
    machine, job = "dgx-h100-4x8", "quickstart"
    moved = placer.replace(found.plan, failed="h3", shrink=True, time_limit=5)
    kept = inputs_of(found.plan)
    apart = placer.predict(kept.topology, kept.job, "torchrun-static", "h[4,1-3]")
    few = {"gpus": [16], "tp": [4], "recompute": ["none"], "top": 2}
    return {
        "Topology": placer.read_topology(machine),
        "Job": placer.read_job(job),
        "Result": found,
        "Plan": found.plan,
        "Score": found.score,
        "Replacement": moved,
        "PlanDiff": placer.diff(apart, found.plan),
        "Allocation": placer.allocate(machine, [job]),
        "Sweep": placer.sweep(machine, job, dp=[1, 2], time_limit=5),
        "Tuning": placer.tune(machine, job, memory=80e9, **few),
        "Picture": placer.draw(found.plan),
    }


def test_reprs_are_one_short_line(shown):
    """Each says what it is, without spilling arrays."""
    for name, thing in shown.items():
        text = repr(thing)
        assert text.startswith(f"<placer.{name}")
        assert text.endswith(">")
        assert "\n" not in text
        assert len(text) <= 200
    assert repr(shown["Plan"]).startswith("<placer.Plan: 32 ranks on 4 nodes, ")
    assert repr(shown["Job"]) == "<placer.Job quickstart: 16 ranks, tp 4 pp 2 dp 2>"


def test_html_is_safe_and_has_the_colours_of_the_page(shown):
    """Names of inputs stay text, tags nest, and no colour or script is written."""
    for name, thing in shown.items():
        if name == "Score":
            continue
        html = thing._repr_html_()
        text = re.sub("<img[^>]*>", "", html).replace("&nbsp;", " ")
        tags = {element.tag for element in Xml.fromstring(f"<all>{text}</all>").iter()}
        assert tags <= {"all", "p", "strong", "table", "tr", "th", "td"}
        assert not re.search(r"color|background|#[0-9a-f]{3}", html.split("<img")[0])
    assert "<b>two" not in shown["Result"]._repr_html_()
    assert "<b>two & racks</b>" in shown["Picture"].name


def test_rows_are_plain(shown):
    """Rows are dicts of plain values with the same keys, one a thing."""
    counts = {"Topology": 4, "Plan": 32, "Result": 32, "Allocation": 1, "Sweep": 2}
    for name in (*counts, "PlanDiff", "Tuning", "Picture"):
        rows = shown[name].rows
        assert json.loads(json.dumps(rows)) == rows
        assert len({tuple(row) for row in rows}) == 1
        assert len(rows) == counts.get(name, len(rows))


def test_pictures_have_rows_of_what_they_show(found, shown):
    """Rows, JSON and CSV hold what is drawn, of every kind of picture."""
    plan = found.plan
    drawn = {name: placer.draw(plan, name) for name in get_args(PictureName)}
    drawn["rack"] = placer.draw(plan, zoom=plan.nodes[1])
    drawn["sweep"], drawn["tune"] = shown["Sweep"].draw(), shown["Tuning"].draw()
    rows = {name: picture.to_dict()["rows"] for name, picture in drawn.items()}
    for name, picture in drawn.items():
        assert json.loads(json.dumps(picture.to_dict()))["rows"] == picture.rows
        assert len(picture.to_csv().splitlines()) == len(rows[name]) + 1 > 1
    assert {row["host"] for row in rows["rack"]} == {plan.nodes[1]}
    assert sum(row["seconds"] for row in rows["timeline"]) == pytest.approx(
        plan.score["step_time_s"]
    )
    sent = sum(sum(row.values()) for row in plan.score["traffic_bytes"].values())
    assert sum(row["bytes"] for row in rows["traffic"]) == sent
    assert max(row["end_s"] for row in rows["pipeline"]) > 0
    assert rows["sweep"] == shown["Sweep"].rows


def test_a_score_is_its_json(found):
    """Every key is an attribute of the same value, and every attribute is a key."""
    score = found.score
    assert json.loads(json.dumps(score)) == score
    fields = {each.called for each in keys_of(Score)}
    assert set(score) <= fields
    assert {name: getattr(score, name) for name in score} == score
    for name in fields - set(score):
        assert getattr(score, name) is None
    assert placer.score(found.plan) == score
    assert isinstance(placer.score(found.plan), Score)


def test_entries_of_a_score_have_the_documented_keys(tmp_path):
    """The typed dicts name the keys that scores have, and no others."""
    slow = MACHINE + '  - {names: "h5", rack: b, compute_factor: 0.5}\n'
    (tmp_path / "machine.yaml").write_text(slow.replace("h[2,4]", "h2"))
    (tmp_path / "job.yaml").write_text(JOB)
    machine, job = tmp_path / "machine.yaml", tmp_path / "job.yaml"
    score = placer.predict(machine, job, "torchrun-static").score
    hops = [
        hop for part in score.critical_path for hop in part.get("crossing_hops", ())
    ]
    for entries, kind in (
        (score.hottest_links, HotLink),
        (score.critical_path, Operation),
        (hops, Hop),
        ([score.slowest_host], SlowHost),
        ([score.worst_group], WorstGroup),
        ([score.memory_bytes], MemoryBytes),
    ):
        assert {key for entry in entries for key in entry} == {
            *kind.__annotations__
        } - {"role"}  # of a workload alone
