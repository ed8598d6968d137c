"""Adapters: how many parameters they have, and what is refused."""

import re

import pytest

from placer.base.errors import InputError
from placer.base.units import parse_count
from placer.job.adapters import Adapters, trained_parameters
from placer.job.models import read_model
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
