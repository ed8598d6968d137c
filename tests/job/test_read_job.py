"""Job files: what a good one says, and where each bad one is wrong.

In the tables the mark ``^`` stands just before the place that the message must name; it
is taken out before the text is read.
"""

import io
import json
import sys
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.documents import parse_document
from placer.job.read import decode_job, read_job
from placer.job.rules import Pin, Rules, parse_ranks, ranks_text
from placer.job.write import to_document
from placer.topology.read import read_topology
from tests.problems import marked, problems_of
from tests.texts import data, table

FULL = """\
format: placer/job
version: 1
name: example
sources: ["made up"]
parallelism: {tp: 4, cp: 2, ep: 1, pp: 8, vp: 8, dp: 16, order: tp-cp-ep-pp-dp}
model: llama3.1-405b
sequence: 8192
micro_batch: 2
micro_batches: 8
bytes: {activation: 2, gradient: 4, parameter_gather: 1}
data_parallel: {sharding: zero1, bucket_parameters: 1000, overlap_reduce: false}
overlap: {tp: true, cp: false}
compute: {micro_batch_time: 120ms, fixed_time: 200ms}
require: {tp: rack, embedding: block}
launcher: {ranks: free}
groups:
  - {name: embedding, collective: all_to_all, bytes: 64MB, ranks: [[0, 1], [5, 4]]}
weights: {tp: 4000, edp: 0.5}
"""


def job_of(text):
    return decode_job(parse_document(text, "job.yaml"))


def problems(text):
    return problems_of(job_of, text)


def changed(old, new):
    assert old in FULL
    return FULL.replace(old, new, 1)


HEAD = "format: placer/job\nversion: 1\nname: small\n"


@pytest.mark.parametrize(
    *table("job/read_job.yaml", "order_may_leave_out_axes_of_size_one")
)
def test_order_may_leave_out_axes_of_size_one(text, order):
    """Without an order it is Megatron's; axes of size 1 find their usual place."""
    job = job_of(HEAD + f"parallelism: {text}\nweights: {{dp: 1}}\n")
    assert "-".join(job.parallelism.order) == order


@pytest.mark.parametrize(*table("job/read_job.yaml", "degrees_of_torchtitan"))
def test_degrees_of_torchtitan(sizes, dp, sharding, shard_size):
    """Replicas and shards make dp, and say how far parameters are sharded."""
    job = job_of(HEAD + f"parallelism: {{{sizes}}}\nweights: {{dp: 1}}\n")
    assert job.parallelism.dp == dp
    mode = job.data_parallel
    assert (mode.sharding, mode.shard_size) == (sharding, shard_size)
    assert asdict(job_of(json.dumps(to_document(job)))) == asdict(job)


@pytest.mark.parametrize(*table("job/read_job.yaml", "what_is_said_arrives"))
def test_what_is_said_arrives(text, found):
    """Every optional section of a file, and the usual where nothing is said."""
    job = job_of(FULL.replace("data_parallel:", "# ") + text)
    assert {key: attrgetter(key)(job) for key in found} == found


COLUMNS, BAD = table(
    "job/read_job.yaml", "a_bad_file_names_the_place_the_key_and_the_fault"
)
BAD += [("tp: 4", "tp: ^" + "9" * 5000, "parallelism.tp", "is not between")]


@pytest.mark.parametrize(COLUMNS, BAD)
def test_a_bad_file_names_the_place_the_key_and_the_fault(old, new, key, fragment):
    """The message has the marked line and column, the key path and what is wrong."""
    text, place = marked(changed(old, new))
    problem = next(p for p in problems(text) if fragment in f"{p.message} ({p.hint})")
    assert (problem.source, problem.key) == ("job.yaml", key)
    assert place in (None, (problem.line, problem.column))


@pytest.mark.parametrize(*table("job/read_job.yaml", "what_a_job_must_have_together"))
def test_what_a_job_must_have_together(rest, fragment):
    """Parts of a job that need each other are missed by name."""
    assert any(fragment in str(p) for p in problems(HEAD + rest))


def test_all_problems_come_at_once_in_file_order():
    """Three faults give three messages, sorted by place.

    Sizes that are read are checked with order, model and ranks in spite of them.
    """
    text = changed("tp: 4,", "tp: x,").replace("name: example", "name: no")
    text = text.replace("launcher: {ranks: free}", "launcer: {ranks: free}")
    found = problems(text)
    assert [p.line for p in found] == [3, 5, 15]
    assert "did you mean" in found[-1].hint
    text = changed("tp: 4, cp: 2, ep: 1, pp: 8", "tp: 256, cp: 1, ep: 3, pp: 1")
    text = text.replace("order: tp-cp-ep-pp-dp", "order: tp-dp-zz")
    text = text.replace("zero1", "zero9").replace("[5, 4]", "[5, 4096]")
    keys = [problem.key for problem in problems(text)]
    axes = ["parallelism.tp", "parallelism.ep", "parallelism.ep", "parallelism.order"]
    assert keys == [*axes, "data_parallel.sharding", "groups[0].ranks[1][1]"]


def test_hints_are_remedies_and_messages_short():
    """The hint writes out the order with pp last.

    Of numbers that YAML 1.1 reads in other ways, and of hostile values, too.
    """
    found = problems(changed("ep: 1, pp: 8", "ep: 4, pp: 8"))
    assert found[-1].hint == "put pp last: tp-cp-ep-dp-pp"
    # A rate that needs an unknown model is not a second problem.
    rest = "parallelism: {dp: 4}\nmodel: nobodys-7b\nsequence: 4096\n"
    found = problems(HEAD + rest + "compute: {tflops_per_gpu: 400}\n")
    assert [problem.key for problem in found] == ["model"]
    (odd,) = problems(changed("sequence: 8192", "sequence: 010"))
    assert "leading zeros" in odd.hint
    (hostile,) = problems(
        changed("sequence: 8192", r'sequence: "\e[31m' + "x" * 500 + '"')
    )
    assert "\x1b" not in str(hostile)
    assert len(str(hostile)) < 150


def test_the_digest_depends_on_content_not_on_layout():
    """Key order, units and comments do not change the digest; a figure does."""
    job = job_of(FULL)
    lines = FULL.splitlines()
    shuffled = "\n".join([*lines[:2], *lines[15:], *lines[2:15]])
    assert job_of(shuffled).sha256 == job.sha256
    assert job_of("# measured\n" + changed("120ms", "0.12")).sha256 == job.sha256
    assert job_of(changed("120ms", "121ms")).sha256 != job.sha256


@pytest.mark.parametrize(
    ("read", "text", "kind"),
    [
        (read_job, FULL, "job"),
        (read_topology, data("topology/uneven.yaml"), "topology"),
    ],
)
def test_a_path_a_name_and_stdin(tmp_path, monkeypatch, read, text, kind):
    """A file by text or path and standard input give the same job or machine.

    A name that is neither file nor preset tells how to list presets.
    """
    monkeypatch.chdir(tmp_path)
    Path("given").write_text(text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    sources = ("given", Path("given"), tmp_path / "given", str(tmp_path / "given"), "-")
    assert len({read(source).sha256 for source in sources}) == 1
    with pytest.raises(InputError, match=f"placer {kind} list"):
        read("there-is-none-such")


def test_digests_outlive_keys_that_say_nothing_new():
    """A job of before the keys of memory has the digest that its plans carry."""
    assert job_of(FULL).sha256 == (
        "21042a671982895aed9358dc25ac0284d8b99294b21e70b38dbcd8253239ce09"
    )
    assert job_of(FULL + "memory: {recompute: none}\n").sha256 == job_of(FULL).sha256


@pytest.mark.parametrize(
    "rest",
    [
        "groups: [{name: a, collective: all_reduce, bytes: 1, ranks: [[0, 5], [2]]}]",
        "traffic: {from: [0, 5], to: [1, 0], bytes: [3, 4]}",
    ],
)
def test_groups_or_traffic_stand_instead_of_axes(rest):
    """The job has the ranks that they name, and may pin the last one, not the next."""
    rules = "\nrules: {pin: [{ranks: %d, nodes: a}]}\n"
    assert job_of(HEAD + rest + rules % 5).world_size == 6
    (problem,) = problems(HEAD + rest + rules % 6)
    assert "rank 6 is above 5" in problem.message


@pytest.mark.parametrize(*table("job/read_job.yaml", "a_wrong_value_is_told_once"))
def test_a_wrong_value_is_told_once(rest):
    """Nothing else is said of what would follow from it."""
    text, place = marked(HEAD + rest)
    (problem,) = problems(text)
    assert (problem.line, problem.column) == place


@pytest.mark.parametrize(*table("job/job.yaml", "rules"))
def test_problems_of_rules(rules, expected):
    """What is wrong is said with line, column and key."""
    rest = f"parallelism: {{tp: 4, dp: 4}}\nweights: {{dp: 1}}\nrules: {rules}\n"
    found = [*map(str, problems(HEAD + rest))]
    assert any(expected in text for text in found), found
    assert all(text.startswith("job.yaml:6:") for text in found)


@settings(max_examples=15)
@given(st.sets(st.integers(0, 20), min_size=1))
def test_rank_lists_read_back(ranks):
    """A rank list that is written reads back as the same ranks."""
    assert parse_ranks(ranks_text(sorted(ranks)), 20) == tuple(sorted(ranks))


def test_both_rules_together():
    """Of two numbers the stricter holds, pins and hosts to avoid add up."""
    mine = Rules((Pin((0,), ("a",)),), ("x",), {"rack": 2}, {"rack": 1})
    more = Rules((Pin((1,), ("b",)),), ("x", "y"), {"rack": 3, "row": 9}, {"rack": 2})
    both = mine.and_also(more)
    assert both.pin == (*mine.pin, *more.pin)
    assert both.avoid == ("x", "y")
    assert (both.at_most, both.spares) == ({"rack": 2, "row": 9}, {"rack": 2})
    assert both.and_also(more) == both
