"""The ``memory`` mapping of a job file, and what it does to the digest."""

import json

from placer.job.write import to_document
from tests.job.test_read_job import FULL, job_of

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
