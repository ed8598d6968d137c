"""Small jobs for the tests of a GPU's memory, and a schedule played by hand."""

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
EXPERTS = SMALL | {
    "experts": 16,
    "top_k": 2,
    "expert_ffn": 512,
    "moe_layers": 14,
    "shared_experts": 1,
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


def played(
    weights,
    stage,
    stages,
    micro_batches,
    group,
    extra=0,
):
    """The most held when one rank runs its list of chunks, each by name.

    Megatron-LM's rule, written out: the lists of forwards and backwards, a warm-up, one
    of each in turn, and a set of the (micro-batch, chunk) that wait.
    """
    chunks = len(weights)
    forwards = []
    backwards = []
    for first in range(0, micro_batches, group):
        batch = range(first, min(first + group, micro_batches))
        forwards += [(i, chunk) for chunk in range(chunks) for i in batch]
        backwards += [(i, chunk) for chunk in reversed(range(chunks)) for i in batch]
    if chunks == 1:
        warm_up = stages - stage - 1
    else:
        warm_up = 2 * (stages - stage - 1) + (chunks - 1) * group + extra
    warm_up = min(warm_up, len(forwards))
    waiting = set()
    most = 0.0
    moves = [("f", name) for name in forwards[:warm_up]]
    rest = forwards[warm_up:]
    for forward, backward in zip(rest, backwards, strict=False):
        moves += [("f", forward), ("b", backward)]
    moves += [("b", name) for name in backwards[len(rest) :]]
    for kind, name in moves:
        if kind == "f":
            waiting.add(name)
            most = max(most, sum(weights[chunk] for _, chunk in waiting))
        else:
            waiting.remove(name)
    assert not waiting
    return most
