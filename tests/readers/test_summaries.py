"""One line for every source says what was read of it."""

import pytest

from placer.base.errors import InputError
from placer.formats.machines.machine import read_topology
from tests.readers import cases


@pytest.mark.parametrize(
    ("more", "options", "error"),
    [
        # Another source is wrong, cannot be joined, or cuts across; nothing says how
        # fast links are; a number is wrong.
        (["n[1-"], {}, "never closed"),
        (["m[1-4]"], {}, "no node in common"),
        (
            ["BlockName=b1 Nodes=n[2-3]\nBlockName=b2 Nodes=n[1,4]\n"],
            {},
            "cut across",
        ),
        ([], {"gpus_per_node": 0}, "expected 1 to"),
    ],
)
def test_notes_are_told_where_an_error_follows(tmp_path, more, options, error):
    """What a reader noted of one source may explain what is wrong with all of them."""
    sources = []
    for number, text in enumerate([cases.TWO_SPINES, *more]):
        (tmp_path / f"{number}.txt").write_text(text)
        form = "slurm:" if "Name=" in text else "hosts:"
        sources.append(f"{form}{tmp_path}/{number}.txt")
    notes = []
    options = {"hardware": cases.H100} | options
    with pytest.raises(InputError, match=error):
        read_topology(sources, note=notes.append, **options)
    assert sum("are one domain: spine1+spine2" in note for note in notes) == 1


def test_reasons_are_told_where_no_node_is_left(tmp_path):
    """A machine of which nothing can be used says why, node by node."""
    items = [cases.node("n1", {}, unschedulable=True), cases.node("n2", {})]
    items[1]["status"] = {"allocatable": {}}
    (tmp_path / "nodes.json").write_text(cases.nodes(*items))
    notes = []
    with pytest.raises(InputError, match="no usable node"):
        read_topology(tmp_path / "nodes.json", hardware=cases.H100, note=notes.append)
    assert "nodes left out, unschedulable: 1 (n1)" in notes
    assert "nodes left out, no GPUs: 1 (n2)" in notes
