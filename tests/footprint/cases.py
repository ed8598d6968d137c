"""Small jobs for the tests of a GPU's memory."""

from placer import testing

SMALL = {"layers": 16, "hidden": 1024, "ffn": 4096, "heads": 16, "kv_heads": 4}


def job_of(model=None, parallelism=None, **content):
    """A job with this model (`SMALL` by default) and these keys."""
    usual = {
        "compute": {"tflops_per_gpu": 400},
        "model": model or SMALL | {"vocab": 32768},
        "sequence": 2048,
        "micro_batches": 16,
    }
    return testing.job("small", **(parallelism or {}), **usual | content)
