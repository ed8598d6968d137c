"""The pages on formats are complete, and what they tell to type keeps what is read."""

import re
import subprocess

import pytest

from placer.formats.jobs.registry import FORMATS as JOBS
from placer.formats.machines.registry import FORMATS as MACHINES
from placer.formats.machines.registry import read
from tests.clients.needs import program
from tests.doc_blocks import ROOT, commands, fences
from tests.readers import cases


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        *(("formats-in", name) for name in MACHINES),
        *(("jobs-in", name) for name in JOBS),
    ],
)
def test_every_format_has_a_page(folder, name):
    """The overview links each format to a page that types how such a file is read."""
    overview = (ROOT / "docs" / folder / "README.md").read_text()
    row = re.search(rf"^\| \[?`{name}`.*?\((\S+?\.md)", overview, re.MULTILINE)
    assert row
    page = ROOT / "docs" / folder / row[1]
    typed = [
        command.text
        for fence in fences(page)
        if fence.language == "console"
        for command in commands(fence.body)
    ]
    # Most jobs are known by what they hold, so that no command need say a format.
    words = page.read_text().split() if folder == "jobs-in" else " ".join(typed).split()
    assert any(f"{name}:" in word for word in words)


def test_shortened_list_of_kubernetes():
    """The jq line of the page leaves nothing out that the reader uses."""
    page = (ROOT / "docs" / "formats-in" / "kubernetes.md").read_text()
    (short,) = re.findall(r"\| jq '(.*?)'\n", page, re.DOTALL)
    items = [
        cases.node("n0", {"nvidia.com/gpu.clique": "a"}),
        cases.node("n1", {"nvidia.com/gpu.clique": "a"}, unschedulable=True),
        cases.node("n2", {}, taints=[{"key": "k", "effect": "NoSchedule"}]),
        cases.node("n3", {}, providerID="aws:///z/i-3"),
        cases.node("n4", {}),
        cases.node("n5", {}),
    ]
    items[4]["metadata"]["annotations"] = {"topograph.run/instance": "i-4", "more": "x"}
    ready = {"type": "Ready", "status": "False", "message": "x"}
    items[5]["status"]["conditions"] = [ready]
    whole = cases.nodes(*items)
    words, options = [program("jq", "jq"), short], {"capture_output": True}
    jq = subprocess.run(words, input=whole, check=True, text=True, **options)
    assert "more" not in jq.stdout
    found = read("kubernetes", jq.stdout, "nodes.json")
    assert found == read("kubernetes", whole, "nodes.json")
    assert found.aliases == {"i-3": "n3", "i-4": "n4"}
