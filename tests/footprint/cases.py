"""Small jobs for the tests of a GPU's memory."""

import json

from placer.documents import parse_document
from placer.job.read import decode_job

SMALL = {
    "layers": 16,
    "hidden": 1024,
    "ffn": 4096,
    "heads": 16,
    "kv_heads": 4,
    "vocab": 32768,
}


def job_of(model=None, **content):
    """A job with this model (`SMALL` by default) and these keys."""
    usual = {
        "format": "placer/job",
        "version": 1,
        "name": "small",
        "compute": {"tflops_per_gpu": 400},
        "model": model or SMALL,
        "parallelism": {},
        "sequence": 2048,
        "micro_batches": 16,
    }
    return decode_job(parse_document(json.dumps(usual | content), "job.json"))
