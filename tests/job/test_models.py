"""Parameters of models and adapters: published totals and closed forms by hand."""

import re

import pytest

from placer.base.errors import InputError
from placer.job.adapters import Adapters, trained_parameters
from placer.job.models import (
    active_parameters,
    attention_parameters,
    layer_parameters,
    read_model,
    total_parameters,
)
from placer.report.machine_text import facts
from tests.footprint.cases import job_of
from tests.texts import table


def test_totals_of_dense_models_in_closed_form():
    """126 layers of 3.1877e9 of Llama, 12 h^2 a layer of GPT-3, and embeddings."""
    llama, gpt3 = read_model("llama3.1-405b"), read_model("gpt3-175b")
    attention = 2 * 16384**2 + 2 * 16384 * 1024
    layer = attention + 3 * 16384 * 53248 + 2 * 16384
    assert layer_parameters(llama) == layer
    assert total_parameters(llama) == 126 * layer + 2 * 128256 * 16384 + 16384
    assert total_parameters(llama) / 1e9 == pytest.approx(405.853, abs=5e-4)
    expected = 96 * (12 * 12288**2 + 2 * 12288) + 50257 * 12288 + 12288
    assert total_parameters(gpt3) == expected
    assert expected == pytest.approx(174.6e9, rel=1e-3)  # table D.1 of the paper


def test_latent_attention_of_deepseek_v3():
    """Low-rank queries, keys and values with their norms, and outputs."""
    query = 7168 * 1536 + 1536 * 128 * (128 + 64)
    key_value = 7168 * (512 + 64) + 512 * 128 * (128 + 128)
    output = 128 * 128 * 7168
    norms = 1536 + 512
    found = attention_parameters(read_model("deepseek-v3"))
    assert found == query + key_value + output + norms


@pytest.mark.parametrize(
    ("name", "total", "active", "off"),
    [
        ("deepseek-v3", 671e9, 37e9, (1e-3, 2e-2)),  # arXiv 2412.19437
        ("qwen3-235b-a22b", 235e9, 22e9, (5e-3, 6e-2)),
        ("gpt-oss-120b", 116.8e9, 5.13e9, (5e-3, 6e-2)),
        ("llama4-maverick", 400e9, 17e9, (5e-3, 6e-2)),
    ],
)
def test_mixtures_have_their_published_parameters(name, total, active, off):
    """Totals and active parameters are those of papers and cards, in round numbers."""
    model = read_model(name)
    assert total_parameters(model) == pytest.approx(total, rel=off[0])
    assert active_parameters(model) == pytest.approx(active, rel=off[1])


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
