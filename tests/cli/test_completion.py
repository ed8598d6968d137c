"""What a shell offers for a word; tests/clients asks the real ones."""

import pytest

from placer.cli.main import COMPLETE
from placer.documents.presets import preset_names
from tests.cli.small_job import topology
from tests.commands import refusal, run
from tests.texts import file_text

HERE = {
    "two.yaml": topology("n[1-3]"),
    "topology.conf": "",
    "topo\n$(x) y": "",
    "placer.yaml": "topology: two.yaml\n",
}

# The last word is the one that is typed; the answers that go on from it.
LINES = {
    "placer pl": ["place"],
    "placer topo va": ["validate"],
    "placer help topo sh": ["show"],
    "placer place --obj": ["--objective"],
    "placer place -t nvl72": [
        name for name in preset_names("topologies") if name.startswith("nvl72")
    ],
    "placer place -j quick": ["quickstart"],
    "placer place -t slurm": ["slurm:", "slurm-yaml:", "slurm-nodes:"],
    "placer place -t slurm:topo": ["slurm:topology.conf"],
    "placer emit p.json openmpi-s": ["openmpi-seq"],
    "placer score baseline:s": ["baseline:sorted-hosts"],
    "placer diff launcher:hy": ["launcher:hydra"],
    "placer place -t two.yaml --hosts n": ["n1", "n2", "n3"],
    "placer place -t two.yaml --hosts n2,n": ["n2,n1", "n2,n3"],
    "placer place -t two.yaml --exclude @topo": ["@topology.conf"],
    "placer place -t two.yaml --require t": ["tp="],
    "placer place -t two.yaml --require tp=n": ["tp=node"],
    "placer place -t two.yaml --spares c": ["cluster="],
    "placer place --hosts n": ["n1", "n2", "n3"],  # by placer.yaml
    "placer explain --group p": ["pp:"],
    "placer explain plan.json --host n1": ["n1"],
    "placer replace plan.json --failed n1,n": ["n1,n2"],
    "placer replace plan.json --zzz n1,n": [],
    "placer place -t missing.yaml --hosts n": [],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("typed")
    for name, text in HERE.items():
        (path / name).write_text(text)
    made = ("place", "-q", "-t", "two.yaml", "-j", "-", "-o", "plan.json")
    axes, weights = {"tp": 4, "dp": 2}, {"tp": 9, "dp": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        run(*made, input=file_text("job", parallelism=axes, weights=weights))
    return path


@pytest.mark.parametrize("line", LINES)
def test_answers(line, folder, monkeypatch):
    """Commands, presets, formats, files and hosts, as fish is told them."""
    monkeypatch.chdir(folder)
    words = {"COMP_WORDS": line, "COMP_CWORD": line.rpartition(" ")[2]}
    answer = run(prog_name="placer", env=words | {COMPLETE: "fish_complete"}).stdout
    kinds = [item.partition("\t")[0].partition(",") for item in answer.split("\n")]
    assert [value for kind, _, value in kinds if kind == "plain"] == LINES[line]


def test_files_are_the_shells():
    """Where a file may stand, the shell offers its own; another shell is not known."""
    env = {COMPLETE: "bash_complete", "COMP_WORDS": "placer check pl", "COMP_CWORD": ""}
    assert run(prog_name="placer", env=env).stdout == "file,pl\n"
    assert "Did you mean 'bash'?" in refusal("completion", "bsh")
