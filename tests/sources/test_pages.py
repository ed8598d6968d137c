"""The overview of job formats names them all, each with a page that is there."""

import re

import pytest

from placer.formats.jobs.registry import FORMATS
from tests.doc_blocks import ROOT

PAGES = ROOT / "docs" / "jobs-in"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_page(name):
    """A row of the overview links it to a page that tells how it is written."""
    overview = (PAGES / "README.md").read_text()
    row = re.search(rf"^\| `{name}` \|.*\((\S+?\.md)", overview, re.MULTILINE)
    assert row
    assert f"{name}:" in (PAGES / row[1]).read_text()
