"""Jobs worked out by hand: of captured files, where there are any, and of our own.

What was worked out, from the file and its framework's rules, is
``tests/data/jobs/worked-out.yaml``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from placer.formats.jobs.job import Options, open_job
from placer.job.models import attention_parameters, padded_vocabulary
from tests.sources.reading import at, problems_of
from tests.texts import FOLDER, data

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = yaml.safe_load(data("jobs/worked-out.yaml"))
DERIVED = {
    "attention parameters": lambda job: attention_parameters(job.model),
    "rows of the embedding": lambda job: padded_vocabulary(
        job.model, job.parallelism.tp
    ),
}


def leaves(values: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Key paths and what stands at them."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield above + key, value


def title(case: dict[str, Any]) -> str:
    return case.get("text") or "+".join(case["files"])


@pytest.mark.parametrize("case", CASES, ids=title)
def test_the_job_is_the_one_worked_out_by_hand(
    case: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    """Each value, or each thing that the files leave open is asked for."""
    if "files" in case:
        folder = request.getfixturevalue("samples") / "jobs"
        specs = [str(folder / name) for name in case["files"]]
    else:
        specs = [f"{case['format']}:{FOLDER / 'jobs' / case['text']}"]
        specs += [f"hf:{FOLDER / 'jobs' / case['join']}"] if "join" in case else []
    given = case.get("given", {})
    options = Options(case.get("gpus"), 400.0, None, given, case.get("select"))
    if "asks" in case:
        problems = problems_of(lambda: open_job(specs, options).job())
        assert [problem.key for problem in problems] == case["asks"]
        return
    job = open_job(specs, options).job()
    expected = dict(leaves(case["job"]))
    found = {
        key: DERIVED[key](job) if key in DERIVED else at(job, key) for key in expected
    }
    assert found == expected
