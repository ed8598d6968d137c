"""Library calls take a plan in any form, and times as the command line does."""

import json
from pathlib import Path

import pytest

import placer

OTHER = placer.predict("dgx-h100-4x8", "quickstart", "slurm", hosts="n[2-3]")


def placed(**how):
    return placer.place("dgx-h100-4x8", "quickstart", time_limit="1m", **how)


def allocated(**how):
    return placer.allocate("dgx-h100-4x8", "quickstart", free="n[1-4]", **how)


CALLS = {
    "score": placer.score,
    "score placement": lambda p: placer.score("dgx-h100-4x8", "quickstart", p),
    "check": placer.check,
    "diff": lambda plan: placer.diff(plan, plan).to_dict(),
    "emit": lambda plan: placer.emit(plan, "slurm-hostfile"),
    "explain": lambda plan: placer.explain(plan, ranks=[3]),
    "replace": lambda p: placer.replace(p, failed="n1", time_limit="9s").plan.nodes,
    "draw": lambda plan: placer.draw(plan, "traffic").svg,
    "report": lambda plan: placer.report_html(plan, None),
    "report against": lambda plan: placer.report_html(OTHER, plan),
    "previous": lambda plan: placed(previous=plan).plan.previous,
    "keep": lambda plan: allocated(keep=[plan]).rows,
    "move": lambda plan: allocated(move=[plan], move_price="1ms").rows,
}


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    """A plan, and whatever else stands for it."""
    path = tmp_path_factory.mktemp("forms") / "plan.json"
    found = placed(hosts="n[1-3]")
    placer.write_plan(found.plan, path)
    return [found.plan, found, path, str(path), json.loads(path.read_text())]


@pytest.mark.parametrize("name", CALLS)
def test_a_plan_in_any_form(forms, name):
    """A plan, a result, a path and plain data of the same plan give the same."""
    first, *others = [CALLS[name](form) for form in forms]
    assert all(other == first for other in others)


def test_broken_data_of_a_plan():
    """A dict that is no plan, and a file that is not there, are told as such."""
    with pytest.raises(placer.InputError, match="the plan"):
        placer.emit({"format": "placer/plan"}, "csv")
    with pytest.raises(placer.InputError, match=r"gone\.json: cannot be read"):
        placer.explain(Path("gone.json"))


def test_durations_as_text():
    """Time limits are seconds or texts; what is neither is told by its name."""
    with pytest.raises(placer.InputError, match="time_limit: "):
        placer.place("dgx-h100-4x8", "quickstart", time_limit="soon")
    with pytest.raises(placer.InputError, match="move_price: "):
        allocated(move_price="much")
    found = placer.sweep("dgx-h100-4x8", "quickstart", dp=[2], time_limit="10s")
    assert len(found.rows) == 1
