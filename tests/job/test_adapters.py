"""Adapters: how many parameters they have, what is refused, and the work they leave."""

import re
from dataclasses import replace
from math import ceil

import pytest

from placer.base.errors import InputError
from placer.base.units import parse_count
from placer.cost.work import forward_share
from placer.job.adapters import Adapters, trained_parameters
from placer.job.model import Compute
from placer.job.models import attention_flops, read_model
from placer.job.work import fill, micro_batch_time, sample_work
from placer.report.machine_text import facts
from tests.footprint.cases import job_of
from tests.texts import table


def test_llama_8b_by_hand():
    """Rank 32 on seven matrices of 32 layers: 83.9 M of 8,030 M parameters."""
    sides = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 3 * (4096 + 14336)
    model = read_model("llama3.1-8b")
    assert sides == 81_920
    assert trained_parameters(model, Adapters(rank=32)) == sides * 32 * 32
    job = job_of("llama3.1-8b", adapters={"rank": 32})
    assert facts(job)["adapters"] == "rank 32, 83.89 M of 8.03 B parameters"


@pytest.mark.parametrize(*table("job/job.yaml", "adapters"))
def test_what_is_refused(adapters, message):
    """What no adapters can be is told at its key."""
    with pytest.raises(InputError, match=re.escape(message)):
        job_of(adapters=adapters)


def test_counts_have_units():
    """84M and 1.5B are how people write how many parameters there are."""
    assert [parse_count(text) for text in ("84M", "1.5B", "7")] == [84e6, 1.5e9, 7]


def test_work_at_a_rate():
    """Frozen weights take two products, adapters three; attention is as it was."""
    full, job = job_of(), job_of(adapters={"rank": 16})
    assert full.model is not None
    active = 16 * (2 * 1024 * 1280 + 3 * 1024 * 4096) + 32768 * 1024
    few = trained_parameters(full.model, Adapters(rank=16))
    attention = attention_flops(full.model, 2048, causal=False) / 0.83
    products = 2048 * (4 * active + 6 * few)
    assert sample_work(job) == pytest.approx(products + attention)
    assert micro_batch_time(job) / micro_batch_time(full) == pytest.approx(
        (products + attention) / (2048 * 6 * active + attention)
    )
    forward = 2048 * 2 * (active + few) + attention / 3
    assert forward_share(job) == pytest.approx(forward / (products + attention))
    assert 1 / 3 < forward_share(job) < 1 / 2
    assert forward_share(full) == pytest.approx(1 / 3)


def test_two_of_three_products_fill_the_gpu():
    """How well products fill it is that of those that run: weights have no gradient.

    Of 2,048 tokens a layer's gradients of weights have tiles of their own.
    """
    compute = Compute(tflops_per_gpu=400, multiprocessors=108)
    full = replace(job_of(), compute=compute)
    job = replace(full, adapters=Adapters(rank=16))
    assert job.model is not None
    # Attention proper is next to nothing of so much work.
    shares = [fill(one, job.model, tp=4, cp=1, work=1e30) for one in (full, job)]
    useful = taken = 0
    for into, out in ((1024, 384), (256, 1024), *[(1024, 1024)] * 3):
        for m, n, k in ((2048, out, into), (2048, into, out)):
            useful += m * n * k
            waves = min(
                ceil(ceil(m / a) * ceil(n / b) / 108)
                for a, b in ((256, 128), (128, 256))
            )
            taken += waves * 108 * 256 * 128 * k
    assert shares[1] == pytest.approx(useful / taken)
    assert shares[1] != pytest.approx(shares[0])
