"""The overview of the launcher pages says of every format what the registry says."""

import re
from pathlib import Path

import pytest

from placer.emit.registry import FORMATS

PAGES = Path(__file__).parents[2] / "docs/launchers"
ROW = re.compile(r"^\| \[(?P<formats>[\w, -]+)\]\((?P<page>[\w-]+\.md)\S*\) \|(.*)\|$")


def rows():
    """Page and cells of every format in the tables of the overview."""
    found = {}
    for line in (PAGES / "README.md").read_text().splitlines():
        if match := ROW.match(line):
            cells = [cell.strip() for cell in match[3].split("|")]
            for format in match["formats"].split(", "):
                assert format not in found
                found[format] = (match["page"], cells)
    return found


def words(row):
    """What the overview has to say of a format that launches a map by itself."""
    nodes = "any" if row.unequal_nodes else "equal"
    return [
        "any" if row.free_ranks else "consecutive",
        "any" if row.free_gpus else "in order",
        nodes if row.unaligned_nodes else "aligned",
    ]


def test_the_overview_has_every_format():
    """Every format has one row, and no row is of something else."""
    assert rows().keys() == FORMATS.keys()


@pytest.mark.parametrize("format", FORMATS)
def test_the_overview_agrees_with_the_registry(format):
    """What a format can express stands there as `placer emit` goes by it."""
    if FORMATS[format].alone:
        assert rows()[format][1][:3] == words(FORMATS[format])


@pytest.mark.parametrize("format", FORMATS)
def test_the_page_shows_the_command(format):
    """The page of every format shows the command that writes it."""
    text = (PAGES / rows()[format][0]).read_text()
    assert re.search(rf"^\$ placer emit \S+\.json {format}( |$)", text, re.MULTILINE)
