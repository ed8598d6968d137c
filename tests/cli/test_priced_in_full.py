"""A search that cannot use the compiled cost says so."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from placer.cli.main import main
from placer.cli.searching import NOT_EXACT
from placer.solve.score import step_time
from placer.solve.score.kernel import is_built
from tests.solve.annealing.test_added_move import MACHINE, jobs


@pytest.mark.skipif(not is_built(), reason="the compiled part is not built")
def test_a_compiled_cost_that_the_scorer_does_not_share_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes are then priced in full, which nobody should have to find out."""
    monkeypatch.chdir(tmp_path)
    Path("machine.json").write_text(json.dumps(MACHINE))
    Path("job.json").write_text(json.dumps(jobs()[2]))
    words = ["place", "-t", "machine.json", "-j", "job.json", "-o", "plan.json"]
    words += ["--effort", "full", "--time-limit", "2"]
    assert NOT_EXACT not in CliRunner().invoke(main, words).stderr
    monkeypatch.setattr(step_time, "_agrees", lambda *_: False)
    assert NOT_EXACT in CliRunner().invoke(main, words).stderr
