"""Job files: what a good one says, and where each bad one is wrong.

In the tables the mark ``^`` stands just before the place that the message must name; it
is taken out before the text is read.
"""

import io
import json
import sys
from dataclasses import asdict
from operator import attrgetter

import pytest

from placer.base.errors import InputError
from placer.documents import parse_document
from placer.job.axes import Parallelism
from placer.job.model import Compute
from placer.job.models import Model
from placer.job.parallel import (
    DataParallel,
    Overlap,
)
from placer.job.read import decode_job, read_job
from placer.job.read_axes import pipeline_groups_agree
from placer.job.traffic import Group
from placer.job.write import to_document
from tests.texts import table

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


def problems_of(text):
    with pytest.raises(InputError) as caught:
        job_of(text)
    return caught.value.problems


def changed(old, new):
    assert old in FULL
    return FULL.replace(old, new, 1)


def test_a_full_file_becomes_a_job():
    """Every field of the file arrives in the job, with units resolved."""
    job = job_of(FULL)
    order = ("tp", "cp", "ep", "pp", "dp")
    assert job.parallelism == Parallelism(4, 2, 1, 8, 16, 8, 4, order)
    assert job.model is not None
    assert job.model.layers == 126
    assert (job.sequence, job.micro_batch, job.micro_batches) == (8192, 2, 8)
    assert (job.bytes.activation, job.bytes.gradient) == (2.0, 4.0)
    assert job.bytes.parameter_gather == 1.0
    assert job.data_parallel == DataParallel("zero1", 1000, overlap_reduce=False)
    assert job.overlap == Overlap(tp=True, cp=False)
    assert job.compute == Compute(0.12, 0.0, 0.2)
    assert job.require == {"tp": "rack", "embedding": "block"}
    assert job.launcher == "free"
    assert job.groups == (
        Group("embedding", "all_to_all", 64e6, 1.0, False, ((0, 1), (5, 4))),
    )
    assert job.weights == {"tp": 4000.0, "edp": 0.5}
    assert job.sources == ("made up",)


HEAD = "format: placer/job\nversion: 1\nname: small\n"


@pytest.mark.parametrize(
    "rest",
    [
        "parallelism: {dp: 4}\nweights: {dp: 1}\n",
        "parallelism: {dp: 4}\n"
        "groups: [{name: a, collective: all_reduce, bytes: 1, ranks: all}]\n",
    ],
)
def test_weights_or_groups_make_a_job_without_a_model(rest):
    """A job that says what it sends needs no model."""
    job = job_of(HEAD + rest)
    assert job.model is None
    assert job.world_size == 4
    assert [group.ranks for group in job.groups] == [((0, 1, 2, 3),)] * len(job.groups)


def test_a_model_can_be_written_out():
    """A mapping of fields is a model of its own."""
    job = job_of(
        HEAD + "parallelism: {tp: 2, dp: 2, ep: 2}\nsequence: 16\n"
        "compute: {tflops_per_gpu: 1}\n"
        "model: {layers: 2, hidden: 8, ffn: 16, heads: 4, vocab: 10, experts: 4,"
        " top_k: 2}\n"
    )
    assert job.model == Model(
        "custom", 2, 8, 16, 4, 4, 10, experts=4, top_k=2, expert_ffn=16, moe_layers=2
    )


def parallelism_of(text):
    return job_of(HEAD + f"parallelism: {text}\nweights: {{dp: 1}}\n").parallelism


@pytest.mark.parametrize(
    *table("job/read_job.yaml", "order_may_leave_out_axes_of_size_one")
)
def test_order_may_leave_out_axes_of_size_one(text, order):
    """Without an order it is Megatron's; axes of size 1 find their usual place."""
    assert "-".join(parallelism_of(text).order) == order


@pytest.mark.parametrize(
    *table("job/read_job.yaml", "pipeline_groups_of_dense_and_expert_layers")
)
def test_pipeline_groups_of_dense_and_expert_layers(fields, order, agree):
    """Groups agree when ranks before pp make equal blocks on both sides, by hand."""
    parallelism = Parallelism(**fields, order=tuple(order.split("-")))
    assert pipeline_groups_agree(parallelism) is agree


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


def test_a_model_with_experts_may_have_no_layer_of_them():
    """That it has none is written out, where all layers would be the default."""
    shape = "{layers: 80, hidden: 8, ffn: 9, heads: 8, vocab: 1, experts: 4, top_k: 2"
    job = job_of(changed("llama3.1-405b", shape + ", moe_layers: 0}"))
    assert job.model.moe_layers == 0
    assert job_of(json.dumps(to_document(job))).sha256 == job.sha256


COLUMNS, BAD = table(
    "job/read_job.yaml", "a_bad_file_names_the_place_the_key_and_the_fault"
)
BAD += [("tp: 4", "tp: ^" + "9" * 5000, "parallelism.tp", "is not between")]


@pytest.mark.parametrize(COLUMNS, BAD)
def test_a_bad_file_names_the_place_the_key_and_the_fault(old, new, key, fragment):
    """The message has the marked line and column, the key path and what is wrong."""
    marked = changed(old, new)
    text = marked.replace("^", "", 1)
    found = [p for p in problems_of(text) if fragment in p.message]
    assert found, problems_of(text)
    problem = found[0]
    assert problem.source == "job.yaml"
    assert problem.key == key
    if "^" in marked:
        before = marked[: marked.index("^")]
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        assert (problem.line, problem.column) == place


@pytest.mark.parametrize(*table("job/read_job.yaml", "what_a_job_must_have_together"))
def test_what_a_job_must_have_together(rest, fragment):
    """Parts of a job that need each other are missed by name."""
    assert any(fragment in str(p) for p in problems_of(HEAD + rest))


def test_all_problems_come_at_once_in_file_order():
    """Three faults give three messages, sorted by place."""
    text = changed("tp: 4,", "tp: x,").replace("name: example", "name: no")
    text = text.replace("launcher: {ranks: free}", "launcer: {ranks: free}")
    found = problems_of(text)
    assert [p.line for p in found] == [3, 5, 15]
    assert "did you mean" in found[-1].hint


def test_the_wrong_pipeline_order_gets_a_remedy():
    """The hint writes out the order with pp last."""
    found = problems_of(changed("ep: 1, pp: 8", "ep: 4, pp: 8"))
    assert found[0].hint == "put pp last: tp-cp-ep-dp-pp"
    # A rate that needs an unknown model is not a second problem.
    rest = "parallelism: {dp: 4}\nmodel: nobodys-7b\nsequence: 4096\n"
    found = problems_of(HEAD + rest + "compute: {tflops_per_gpu: 400}\n")
    assert [problem.key for problem in found] == ["model"]


def test_the_digest_depends_on_content_not_on_layout():
    """Key order, units and comments do not change the digest; a figure does."""
    job = job_of(FULL)
    lines = FULL.splitlines()
    shuffled = "\n".join([*lines[:2], *lines[15:], *lines[2:15]])
    assert job_of(shuffled).sha256 == job.sha256
    assert job_of("# measured\n" + changed("120ms", "0.12")).sha256 == job.sha256
    assert job_of(changed("120ms", "121ms")).sha256 != job.sha256


def test_the_digest_covers_the_content_of_a_model_preset():
    """A preset and the same model written out differ in nothing but the name."""
    inline = (
        "{name: llama3.1-405b, layers: 126, hidden: 16384, ffn: 53248, heads: 128,"
        " kv_heads: 8, vocab: 128256}"
    )
    written_out = changed("model: llama3.1-405b", f"model: {inline}")
    assert job_of(written_out).sha256 == job_of(FULL).sha256
    other = written_out.replace("layers: 126", "layers: 127")
    assert job_of(other).sha256 != job_of(FULL).sha256


def test_read_job_takes_a_path_a_name_and_stdin(tmp_path, monkeypatch):
    """A file by text or path and standard input give the same job.

    A name that is neither file nor preset tells how to list presets.
    """
    path = tmp_path / "job.yaml"
    path.write_text(FULL)
    digest = job_of(FULL).sha256
    assert read_job(path).sha256 == digest
    assert read_job(str(path)).sha256 == digest
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FULL.encode())))
    assert read_job("-").sha256 == digest
    with pytest.raises(InputError, match="placer job list"):
        read_job("there-is-no-such-job")


MEMORY = """\
memory:
  recompute: full
  recompute_method: block
  recompute_layers: 2
  gemm: fp8
  optimizer_bytes: 8
  micro_batch_group: 8
  activations: 40GB
  reserve: 0
"""


def test_memory_is_read_written_and_counts_for_the_digest():
    """Sizes have units, 0 is not nothing, and what is left out has its default."""
    job = job_of(FULL + MEMORY)
    memory = job.memory
    assert (memory.recompute, memory.recompute_method) == ("full", "block")
    assert (memory.activations, memory.reserve) == (40e9, 0.0)
    assert (memory.optimizer_bytes, memory.gradient_bytes) == (8.0, None)
    again = job_of(json.dumps(to_document(job)))
    assert again.memory == memory
    assert again.sha256 == job.sha256 != job_of(FULL).sha256


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
    (problem,) = problems_of(HEAD + rest + rules % 6)
    assert "rank 6 is above 5" in problem.message


@pytest.mark.parametrize(*table("job/read_job.yaml", "a_wrong_value_is_told_once"))
def test_a_wrong_value_is_told_once(rest):
    """Nothing else is said of what would follow from it."""
    before = HEAD + rest[: rest.index("^")]
    (problem,) = problems_of(HEAD + rest.replace("^", ""))
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    assert (problem.line, problem.column) == place


def test_an_empty_interval_is_none():
    """A plan that was made from it is read again."""
    entry = {"key": "links", "value": "GB200", "why": "no rate", "option": "--gpu"}
    content = {"format": "placer/job", "version": 1, "name": "one"}
    content |= {"weights": {"dp": 1}}
    content |= {"parallelism": {"dp": 2}, "assumed": [entry | {"interval": []}]}
    job = decode_job(parse_document(json.dumps(content), "job.json"))
    assert job.assumed[0].interval is None
    assert "interval" not in to_document(job)["assumed"][0]
