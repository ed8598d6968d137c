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


def test_llama_405b_has_its_published_parameters():
    """126 layers of 3.1877e9 and two embeddings make 405.853e9."""
    model = read_model("llama3.1-405b")
    attention = 2 * 16384**2 + 2 * 16384 * 1024
    layer = attention + 3 * 16384 * 53248 + 2 * 16384
    assert layer_parameters(model) == layer
    assert total_parameters(model) == 126 * layer + 2 * 128256 * 16384 + 16384
    assert total_parameters(model) / 1e9 == pytest.approx(405.853, abs=5e-4)


def test_gpt3_has_about_175e9_parameters():
    """12 h^2 a layer and one shared embedding: 174.6e9 (table D.1 of the paper)."""
    model = read_model("gpt3-175b")
    expected = 96 * (12 * 12288**2 + 2 * 12288) + 50257 * 12288 + 12288
    assert total_parameters(model) == expected
    assert expected == pytest.approx(174.6e9, rel=1e-3)


def test_deepseek_v3_has_671e9_parameters_of_which_37e9_are_active():
    """Totals and active parameters are those of arXiv 2412.19437 (671B, 37B)."""
    model = read_model("deepseek-v3")
    query = 7168 * 1536 + 1536 * 128 * (128 + 64)
    key_value = 7168 * (512 + 64) + 512 * 128 * (128 + 128)
    output = 128 * 128 * 7168
    norms = 1536 + 512
    assert attention_parameters(model) == query + key_value + output + norms
    assert total_parameters(model) == pytest.approx(671e9, rel=1e-3)
    assert active_parameters(model) == pytest.approx(37e9, rel=2e-2)


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("qwen3-235b-a22b", 235e9, 22e9),
        ("gpt-oss-120b", 116.8e9, 5.13e9),
        ("llama4-maverick", 400e9, 17e9),
    ],
)
def test_mixtures_have_their_published_parameters(name, total, active):
    """Totals and active parameters are those of the model cards, in round numbers."""
    model = read_model(name)
    assert total_parameters(model) == pytest.approx(total, rel=5e-3)
    assert active_parameters(model) == pytest.approx(active, rel=6e-2)


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
