"""What tables say of jobs' sources: ``tests/data/sources/cases``.

A case promises something in a sentence (``says``) and gives a source: ``read``, its
format and text, which is the name of a text in `tests.sources.reading` or what
`tests.texts.Texts` takes, with the shape ``join`` and files ``beside`` it; ``files``,
captured ones; or ``captured``, one of those with a text in the place of another.
``rest`` names keys that are given as in `tests.sources.reading.REST`, ``given`` others.
What must come of it is ``job``, by the keys of its file, and ``facts`` that it follows
from; ``asks``, the keys that are asked for; or a ``problem`` with its ``hint``.
"""

from pathlib import Path

import pytest

from placer.formats.jobs.job import Options, open_job
from placer.job.adapters import trained_parameters
from placer.job.models import attention_parameters, padded_vocabulary
from tests.problems import problems_of
from tests.sources.reading import TEXTS, at, given
from tests.texts import Texts
from tests.texts import cases as tables

DERIVED = {
    "attention parameters": lambda job: attention_parameters(job.model),
    "trained parameters": lambda job: trained_parameters(job.model, job.adapters),
    "rows of the embedding": lambda job: padded_vocabulary(
        job.model, job.parallelism.tp
    ),
}
MODEL = tuple(f"model.{key}" for key in ("layers", "hidden", "heads", "ffn", "vocab"))


def leaves(values, above=""):
    """Key paths and what stands at them."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield above + key, value


def sources_of(case, folder):
    """The sources of a case, written to a folder."""
    text_of = Texts(TEXTS | case.get("texts", {}), {})
    for name, source in case.get("beside", {}).items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text_of(source))
    ((name, source),) = case["read"].items()
    path = folder / case.get("called", "source")
    path.write_text(text_of(source))
    if "join" not in case:
        return [f"{name}:{path}"]
    (folder / "config.json").write_text(text_of(case["join"]))
    return [f"{name}:{path}", f"hf:{folder}/config.json"]


def settings_of(case):
    """What is given beside the sources of a case."""
    keys = [MODEL if key == "model" else (key,) for key in case.get("rest", ())]
    found = given(*(key for some in keys for key in some)) | case.get("given", {})
    return {key: str(value) for key, value in found.items()}


@pytest.mark.parametrize("case", tables("sources/cases"))
def test_the_job_is_the_one_worked_out_by_hand(case, request, tmp_path):
    """Each value, or each thing that the files leave open is asked for."""
    if "files" in case:
        folder = request.getfixturevalue("samples") / "jobs"
        specs = [str(folder / name) for name in case["files"]]
    elif "captured" in case:
        name, old, new = case["captured"]
        own = tmp_path / Path(name).name
        text = (request.getfixturevalue("samples") / "jobs" / name).read_text()
        own.write_text(text.replace(old, new))
        specs = [str(own)]
    else:
        specs = sources_of(case, tmp_path)
    gpus, select = case.get("gpus"), case.get("select")
    options = Options(gpus, 400.0, None, settings_of(case), select)
    if "job" not in case:
        problems = problems_of(lambda: open_job(specs, options).job())
        check_problems(problems, case)
        return
    opened = open_job(specs, options)
    job, facts = opened.job(), opened.found.facts
    for key, value in case.get("facts", {}).items():
        assert facts[key].value == value, key
    expected = dict(leaves(case["job"]))
    found = {
        key: DERIVED[key](job) if key in DERIVED else at(job, key) for key in expected
    }
    assert found == expected


def check_problems(problems, case):
    """They are of these keys; the first has these words, this hint and this line."""
    if "asks" in case:
        assert [problem.key for problem in problems] == case["asks"]
    assert case.get("problem", "") in problems[0].message
    assert case.get("hint", "") in problems[0].hint
    assert any(case.get("any hint", "") in problem.hint for problem in problems)
    assert case.get("line", problems[0].line) == problems[0].line
