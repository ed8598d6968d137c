"""Completion in the real shells."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_completion import HERE
from tests.clients import needs
from tests.commands import run as typed

# Each runs the script that is printed, then asks for answers to a line.
BEFORE = {"zsh": "compdef() { :; }\n"}
ASK = {
    "bash": r"""
        compopt() { :; }
        COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=("$2") COMP_CWORD=0
        _placer_completion placer
        printf '%s\n' "${COMPREPLY[@]}"
        """,
    "zsh": r"""
        compadd() { print -l $completions }
        _describe() { print -l ${completions_with_descriptions%%:*} }
        _path_files() { print -l $words[CURRENT]* }
        words=(${=1}) CURRENT=${#words}
        _placer_completion || :
        """,
    "fish": r"complete -C $argv[1] | string replace -r '\t.*' ''; or true",
}
PLAIN = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}


@pytest.mark.parametrize("shell", ASK)
@pytest.mark.parametrize(
    ("line", "last", "answers"),
    [
        ("placer pl", "pl", {"place"}),
        ("placer place -t two.yaml --hosts n2,n", "n2,n", {"n2,n1", "n2,n3"}),
        ("placer place -t tw", "tw", {"two.yaml"}),
        ("placer place -t slurm:tw", "tw", {"slurm:two.yaml"}),
        ("placer place -t two.yaml --require tp=n", "n", {"tp=node"}),
    ],
)
def test_in_the_shell(shell, line, last, answers, tmp_path):
    """The shell offers commands, hosts, files and files behind a format.

    For bash the last word begins behind ":" and "=", and so does its answer.
    """
    program = needs.program(shell, shell)
    (tmp_path / "two.yaml").write_text(HERE["two.yaml"])
    script = typed("completion", shell).stdout
    code = BEFORE.get(shell, "") + script + ASK[shell]
    name = [] if shell == "fish" else [shell]
    run = subprocess.run(
        [program, PLAIN[shell], "-c", code, *name, line, last],
        cwd=tmp_path,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": "/tmp"},
        capture_output=True,
        text=True,
        check=True,
    )
    behind = {re.split("[:=]", answer)[-1] for answer in answers}
    assert set(run.stdout.split()) == (behind if shell == "bash" else answers)
