"""The pages on formats are complete, and what they tell to type keeps what is read."""

import re
import subprocess

import pytest

from placer.formats.machines.registry import FORMATS, read
from tests.clients.needs import program
from tests.doc_blocks import ROOT, commands, fences
from tests.readers import cases

PAGES = ROOT / "docs" / "formats-in"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_page(name):
    """The overview links each format to a page whose commands read such a file."""
    overview = (PAGES / "README.md").read_text()
    row = re.search(rf"^\| \[`{name}`\]\((\S+?)[#)]", overview, re.MULTILINE)
    assert row
    typed = [
        command.text
        for fence in fences(PAGES / row[1])
        if fence.language == "console"
        for command in commands(fence.body)
    ]
    assert any(f" {name}:" in text for text in typed)


def test_shortened_list_of_kubernetes():
    """The jq line of the page leaves nothing out that the reader uses."""
    page = (PAGES / "kubernetes.md").read_text()
    (short,) = re.findall(r"\| jq '(.*?)'\n", page, re.DOTALL)
    ready = {"type": "Ready", "status": "False", "message": "x"}
    items = [
        cases.node("n0", {"nvidia.com/gpu.clique": "a"}),
        cases.node("n1", {"nvidia.com/gpu.clique": "a"}, unschedulable=True),
        cases.node("n2", {}, taints=[{"key": "k", "effect": "NoSchedule"}]),
        cases.node("n3", {}, providerID="aws:///z/i-3"),
        cases.node("n4", {}),
        cases.node("n5", {}),
    ]
    items[4]["metadata"]["annotations"] = {"topograph.run/instance": "i-4", "more": "x"}
    items[5]["status"]["conditions"] = [ready]
    whole = cases.nodes(*items)
    jq = subprocess.run(
        [program("jq", "jq"), short],
        input=whole,
        capture_output=True,
        check=True,
        text=True,
    )
    assert "more" not in jq.stdout
    found = read("kubernetes", jq.stdout, "nodes.json")
    assert found == read("kubernetes", whole, "nodes.json")
    assert found.aliases == {"i-3": "n3", "i-4": "n4"}
