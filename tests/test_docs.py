"""The documents keep their word: what they show runs, what they link to exists.

In the README and ``docs/*.md``, in order and in one folder for each document:

* a fence after ``<!-- file: NAME -->`` is written to that file;
* a ``python`` fence is executed;
* in a ``console`` fence every line ``$ placer ...`` must exit with 0;
* in a ``bash`` fence a line that installs and then runs ``placer`` must do so too, and
  the whole fence must be valid bash;
* a ``yaml`` or ``json`` fence that names a placer format must be readable.

A fence after ``<!-- not run -->`` is left alone.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")]
FENCE = re.compile(
    r"^(?:<!-- (?P<mark>not run|file: (?P<file>\S+)) -->\n+)?"
    r"^```(?P<language>\w+)[^\n]*\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
INSTALL_AND_RUN = re.compile(r"^python3 -m venv .*&& \S*/placer (?P<args>.*)$")


@dataclass(frozen=True)
class Fence:
    place: str
    language: str
    body: str
    mark: str
    file: str


def fences(document: Path) -> Iterator[Fence]:
    text = document.read_text()
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        yield Fence(
            f"{document.relative_to(ROOT)}:{line}",
            match["language"],
            match["body"],
            match["mark"] or "",
            match["file"] or "",
        )


def run_placer(arguments: str, folder: Path, place: str) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "cli.py"), *shlex.split(arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, f"{place}: placer {arguments}\n{run.stderr}"


def run_bash(fence: Fence, folder: Path) -> None:
    check = subprocess.run(
        ["bash", "-n"], input=fence.body, capture_output=True, text=True
    )
    assert check.returncode == 0, f"{fence.place}: {check.stderr}"
    for line in fence.body.splitlines():
        if match := INSTALL_AND_RUN.match(line):
            run_placer(match["args"], folder, fence.place)


def run_console(fence: Fence, folder: Path) -> None:
    for line in fence.body.replace("\\\n", " ").splitlines():
        if line.startswith("$ placer "):
            run_placer(line.removeprefix("$ placer "), folder, fence.place)


def read_format(fence: Fence, folder: Path) -> None:
    import placer

    readers = {
        "placer/topology": placer.read_topology,
        "placer/job": placer.read_job,
        "placer/plan": placer.read_plan,
    }
    found = re.search(r'^[\s{"]*format"?: *"?(placer/\w+)', fence.body, re.MULTILINE)
    if found:
        path = folder / f"fence.{fence.language}"
        path.write_text(fence.body)
        readers[found[1]](str(path))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_document_runs(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything a document shows to type works, in the order it is shown."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__document__"}
    for fence in fences(document):
        if fence.mark == "not run":
            continue
        if fence.file:
            (tmp_path / fence.file).write_text(fence.body)
        if fence.language == "python":
            exec(compile(fence.body, fence.place, "exec"), namespace)
        elif fence.language == "console":
            run_console(fence, tmp_path)
        elif fence.language == "bash":
            run_bash(fence, tmp_path)
        elif fence.language in ("yaml", "json"):
            read_format(fence, tmp_path)


def headings(document: Path) -> set[str]:
    """Anchors that GitHub gives the headings of a document."""
    text = FENCE.sub("", document.read_text())
    titles = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", t).lower().replace(" ", "-") for t in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_resolve(document: Path) -> None:
    """Every relative link of a document leads to a file, and to a heading in it."""
    broken = []
    for match in LINK.finditer(FENCE.sub("", document.read_text())):
        target = match["target"] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = document.parent / name if name else document
        if not path.exists() or (anchor and anchor not in headings(path)):
            broken.append(target)
    assert broken == []


def test_readme_is_short() -> None:
    """The README shows a working command within 15 lines and ends within 150."""
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    assert any(INSTALL_AND_RUN.match(line) for line in lines[:15])


def test_continuous_integration_runs_the_readme_line() -> None:
    """The README has exactly one line that sets up and runs the tests."""
    readme = (ROOT / "README.md").read_text()
    pattern = r"^python3 -m venv \.venv && .* -m pytest -n auto$"
    assert len(re.findall(pattern, readme, re.MULTILINE)) == 1
