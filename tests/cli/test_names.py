"""One way to name a placement, the names of commands, and what is said of files."""

import pytest

from tests.commands import data, refusal, run

INPUTS = ("-t", "dgx-h100-4x8", "-j", "quickstart")
FEW = ("--tp", "4", "--pp", "2", "--vp", "1", "--recompute", "none", "--top", "1")
TAKERS = {
    "score": ("score", "PLAN"),
    "diff": ("diff", "PLAN", "PLAN"),
    "pipeline": ("draw", "PLAN", "pipeline"),
    "against": ("report", "PLAN", "--against", "baseline:random"),
    "explain": ("explain", "PLAN"),
    "check": ("check", "PLAN"),
    "emit": ("emit", "PLAN", "slurm-hostfile"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a plan in the order that Slurm has by itself, and its host file."""
    folder = tmp_path_factory.mktemp("made")
    plan, hosts = folder / "plan.json", folder / "hosts.txt"
    run("score", "launcher:slurm", *INPUTS, "-o", plan)
    run("emit", plan, "slurm-hostfile", "-o", hosts)
    return folder


@pytest.fixture
def files(made, folder):
    for path in made.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", TAKERS)
def test_a_placement_is_named_in_one_way(name):
    """A launcher, a baseline and a host file stand wherever a plan file does."""
    for text in ("launcher:slurm", "baseline:given-order", "hostfile:hosts.txt"):
        words = [text if word == "PLAN" else word for word in TAKERS[name]]
        run(*words, *INPUTS)
        asked = refusal(*words)
        assert "Missing options '-t' / '--topology' and '-j' / '--job'" in asked
        assert "only a plan keeps them" in asked or name in ("diff", "against")
    run(*("plan.json" if word == "PLAN" else word for word in TAKERS[name]))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("typed", "new"),
    [
        ("predict INPUTS --launcher slurm", "score launcher:slurm"),
        ("score INPUTS --hostfile hosts.txt", "score hostfile:hosts.txt"),
        ("score --plan plan.json", "score plan.json"),
        ("score plan.json --baseline random", "diff baseline:random plan.json"),
        ("score plan.json --format html", "report plan.json"),
        ("draw plan.json -o x.html", "report plan.json -o x.html"),
        (
            "diff plan.json plan.json -o x.html",
            "report plan.json --against plan.json -o x.html",
        ),
        ("place INPUTS -o p.json --report x.html", "report p.json -o x.html"),
    ],
)
def test_old_names_tell_the_new_one(typed, new):
    """What was typed before works, and one line says what to type now."""
    words = typed.replace("INPUTS", " ".join(INPUTS)).split()
    told = run(*words).stderr.splitlines()
    (note,) = [line for line in told if line.startswith("note:")]
    assert note.split('"')[-2] == f"placer {new}"
    assert note.endswith("the old name will be removed")
    assert "note:" not in run(*words, "-q").stderr


def test_machines_and_jobs_have_the_same_verbs():
    """topology and job list, show, convert and validate; their old names do too."""
    for new, old in (("topology", "topo"), ("job", "jobs")):
        shown = run(new, "--help").stdout
        assert run(old, "--help").stdout == shown
        listed = shown.partition("Commands:")[2].split()
        assert {"list", "show", "convert", "validate", "formats"} <= set(listed)
        found = run(old, "list")
        assert (found.stdout, found.stderr) == (run(new, "list").stdout, "")


@pytest.mark.parametrize(
    ("kind", "preset"), [("topology", "dgx-h100-4x8"), ("job", "quickstart")]
)
def test_files_are_validated(tmp_path, kind, preset):
    """All that is wrong with all of them is told at once; without one it is misused.

    What is valid is told with its size.
    """
    bad = [tmp_path / name for name in ("one.yaml", "two.yaml")]
    for path in bad:
        path.write_text(f"format: placer/{kind}\nversion: 1\n")
    told = refusal(kind, "validate", preset, *bad)
    assert all(f"{path}:1:1" in told for path in bad)
    for command in ("show", "validate"):
        assert kind.upper() in refusal(kind, command)
    size = {"topology": "4 nodes, 32 GPUs", "job": "16 ranks"}[kind]
    assert run(kind, "validate", preset).stdout == f"{preset}: valid, {size}\n"
    (row,) = data(kind, "validate", preset)
    assert row["name"] == preset
    assert row.get("ranks", 16) == 16


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("report", "plan.json"), "plan-report.html"),
        (("draw", "plan.json", "traffic"), "plan-traffic.svg"),
        (("report", "launcher:slurm", *INPUTS), "launcher-slurm-report.html"),
    ],
)
def test_no_terminal_is_filled(files, monkeypatch, words, name):
    """On a terminal a page or a picture goes to a file named after the plan."""
    piped = run(*words).stdout
    monkeypatch.setattr("placer.cli.output.is_terminal", lambda: True)
    found = run(*words)
    assert found.stdout == ""
    assert found.stderr.endswith(f"wrote {name}\n")
    assert (files / name).read_text() == piped
    assert run(*words, "-o", "-").stdout == piped


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "words",
    [
        ("place", *INPUTS, "-o", "OUT"),
        ("replace", "plan.json", "--added", "n3", "-o", "OUT"),
        ("diff", "plan.json", "plan.json", "-o", "OUT"),
        ("report", "plan.json", "-o", "OUT"),
        ("topology", "convert", "dgx-h100-4x8", "-o", "OUT"),
        ("tune", *INPUTS, *FEW, "-o", "OUT"),
    ],
    ids=lambda words: words[0],
)
def test_what_is_written_is_told(words):
    """Every command that writes a file says so in the same words, unless quiet."""
    found = run(*words)
    assert found.stderr.splitlines().count("wrote OUT") == 1
    assert "wrote" not in run(*words, "-q").stderr
