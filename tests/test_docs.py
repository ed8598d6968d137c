"""The documents keep their word: what they show runs, what they link to exists.

In the pages of `DOCUMENTS`, in order and in one folder for each document:

* a fence after ``<!-- file: NAME -->`` is written to that file;
* any other ``python`` fence is executed;
* in a ``console`` fence every command after a ``$`` must run and end with status 0, or
  with what ``$ echo $?`` says below it. Where the fence shows output, this must be what
  is printed; ``...`` stands for any text, on a line of its own for any lines;
* in a ``bash`` fence a line that runs ``.venv/bin/placer`` must do so too, and the
  whole fence must be valid bash;
* a ``yaml`` or ``json`` fence that names a placer format must be readable.

A fence after ``<!-- not run -->`` is left alone. After ``<!-- on the cluster -->`` it
must be valid bash here; `tests.clients.test_tutorial` runs it.
"""

import json
import re
import runpy
import subprocess
import tomllib

import pytest
import yaml

from placer.formats.schemas import SCHEMAS, schema_text
from tests.doc_blocks import FENCE, ROOT, Command, commands, fences, run, with_placer
from tests.marks import slow

TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
DOCUMENTS = [*(ROOT / name for name in TOP), *ROOT.glob("docs/**/*.md")]
# What users copy first, and what changes of the code make stale first.
OFTEN = [ROOT / "README.md", ROOT / "docs/architecture.md"]
OTHERS = [path for path in DOCUMENTS if path not in OFTEN]
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
INSTALL = "python3 -m venv .venv && .venv/bin/pip install -q ."
RUN = re.compile(r"^\.venv/bin/(?P<command>placer .*)$")


def check_bash(text, place):
    check = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    assert check.returncode == 0, f"{place}: {check.stderr}"


def run_bash(fence, folder, environ):
    check_bash(fence.body, fence.place)
    for line in fence.body.splitlines():
        if match := RUN.match(line):
            run(Command(match["command"], [], 0), folder, environ, fence.place)


def run_console(fence, folder, environ):
    for command in commands(fence.body):
        if fence.mark == "on the cluster":
            check_bash(command.text, fence.place)
        else:
            run(command, folder, environ, fence.place)


def read_format(fence, folder):
    import placer
    from placer.calibrate.measurements import read_measurements
    from placer.formats.jobs.job_list import read_job_list

    readers = {
        "placer/topology": placer.read_topology,
        "placer/job": placer.read_job,
        "placer/jobs": read_job_list,
        "placer/workload": placer.read_job,
        "placer/plan": placer.read_plan,
        "placer/measurements": read_measurements,
    }
    found = re.search(r'^[\s{"]*format"?: *"?(placer/\w+)', fence.body, re.MULTILINE)
    if found:
        path = folder / f"fence.{fence.language}"
        path.write_text(fence.body)
        readers[found[1]](str(path))


@pytest.mark.parametrize(
    "document", [*OFTEN, *slow(OTHERS)], ids=lambda path: path.name
)
def test_document_runs(document, tmp_path, monkeypatch):
    """Everything a document shows to type works, in the order it is shown."""
    folder = tmp_path / "reader"
    folder.mkdir()
    environ = with_placer(tmp_path)
    monkeypatch.chdir(folder)
    namespace = {"__name__": "__document__"}
    for fence in fences(document):
        if fence.mark == "not run":
            continue
        if fence.file:
            (folder / fence.file).write_text(fence.body)
        if fence.language == "python" and not fence.file:
            exec(compile(fence.body, fence.place, "exec"), namespace)
        elif fence.language == "console":
            run_console(fence, folder, environ)
        elif fence.language == "bash":
            run_bash(fence, folder, environ)
        elif fence.language in ("yaml", "json"):
            read_format(fence, folder)


def headings(document):
    """Anchors that GitHub gives the headings of a document."""
    text = FENCE.sub("", document.read_text())
    titles = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", t).lower().replace(" ", "-") for t in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_resolve(document):
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


def test_readme_is_short_and_sends_readers_where_the_first_page_does():
    """It sets up and runs a command within 15 lines and ends within 90.

    Its table of pages has the rows of the other.
    """
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 90
    assert INSTALL in lines[:15]
    assert any(RUN.match(line) for line in lines[:15])
    table = re.compile(r"\| you \| read \|\n(.*?)\n\n", re.S)
    (here,) = table.findall((ROOT / "README.md").read_text())
    assert here.count("\n") > 7
    assert table.findall((ROOT / "docs/index.md").read_text()) == [
        here.replace("](docs/", "](")
    ]


def test_words_of_the_method_are_defined():
    """Every term in bold in the method page is in the glossary, and there only once."""
    glossary = (ROOT / "docs/glossary.md").read_text()
    words = [word.lower() for word in re.findall(r"^\| ([^|]+?) \|", glossary, re.M)]
    defined = [word for word in words if word != "word"]
    assert len(defined) == len(set(defined))
    method = FENCE.sub("", (ROOT / "docs/method.md").read_text())
    used = re.findall(r"\*\*([a-z][^*]*)\*\*", method)
    assert len(used) > 20
    assert {word for word in used if word.removesuffix("s") not in defined} <= {
        *defined
    }


def test_modules_the_method_names_exist():
    """Every path of the solver that the method page names is there."""
    method = FENCE.sub("", (ROOT / "docs/method.md").read_text())
    named = re.findall(
        r"`(?:placer/)?((?:solve|placement|cli)/[\w/]+(?:\.py|/))`", method
    )
    assert len(named) > 12
    assert [name for name in named if not (ROOT / "placer" / name).exists()] == []
    # A module named alone lies in some folder of the package.
    alone = re.findall(r"`(\w+\.py)`", method)
    assert [name for name in alone if not [*(ROOT / "placer").rglob(name)]] == []


def test_conclusions_quote_the_evidence():
    """Each figure of the page of conclusions stands on the page that its row links."""
    page = (ROOT / "docs/validation.md").read_text()
    assert len(page) <= 4096
    row = re.compile(r"^\| [^|]+ \| ([^|]*\d[^|]*) \| \[[^\]]+\]\(([^)#]+)", re.M)
    rows = row.findall(page)
    assert len(rows) > 8
    for shown, link in rows:
        evidence = (ROOT / "docs" / link).read_text()
        figures = re.findall(r"[+-]?[\d.]+ ?%|[\d.]+ ms|\d+ of \d+", shown)
        assert [one for one in figures if one not in evidence] == [], shown


def test_the_catalogue_tells_every_bound_and_move():
    """The page of the site has what each file of a bound, move or construction says."""
    conf = runpy.run_path(str(ROOT / "docs/conf.py"))
    source = [(ROOT / "docs/reference/catalogue.md").read_text()]
    conf["_fill_catalogue"](None, "reference/catalogue", source)
    assert "<!--" not in source[0]
    for room in ("bounds", "annealing/native/moves", "construct"):
        paths = (ROOT / "placer/solve" / room).rglob("*.hpp" if "/" in room else "*.py")
        files = [path for path in paths if path.name != "__init__.py"]
        assert len(files) > 5
        for path in files:
            name = path.relative_to(ROOT / "placer/solve").as_posix()
            assert f"### `{name}`\n\n" in source[0]


def test_the_page_of_keys_has_every_key():
    """The page of the site has each key of each schema, with what the schema says."""
    conf = runpy.run_path(str(ROOT / "docs/conf.py"))
    source = [(ROOT / "docs/reference/keys.md").read_text()]
    conf["_fill_keys"](None, "reference/keys", source)
    assert "<!--" not in source[0]
    for name in SCHEMAS:
        schema = json.loads(schema_text(name))
        for key, value in schema["properties"].items():
            (row,) = re.findall(rf"^\| .*`{key}`.* \|$", source[0], re.M)[:1]
            assert value.get("description", "").partition("|")[0] in source[0], row
    for inner in (
        *("tiers[].rails", "memory.recompute", "roles[].gpus", "rules.pin[]."),
        *("baselines.*.violates", "score.roles.*.seconds", "previous.curve[].method"),
    ):
        assert f"`{inner}" in source[0]
    share = next(row for row in source[0].splitlines() if "scale_out_share`" in row)
    assert "share of the step that exposed_scale_out_s is" in share


def test_citation_has_the_version():
    """Who cites the project cites the version that is there."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]


def test_commits_and_changes_pass_the_same_checks():
    """Every hook before a commit is a check of ``.ci/run``, run by the same tool."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    checks = (ROOT / ".ci/run").read_text().replace('"$venv/bin/', ".venv/bin/")
    checks = checks.replace('"', "")
    for hook in (hook for repo in hooks for hook in repo["hooks"]):
        assert hook["entry"].removesuffix(" --force-exclude") in checks
