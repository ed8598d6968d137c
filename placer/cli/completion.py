"""``placer completion``: the script that makes a shell complete ``placer``."""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

from placer.cli.grouped import Command
from placer.cli.main import COMPLETE
from placer.cli.options import OneOf
from placer.cli.output import write_line

# As click's, and: bash itself takes slurm:FILE and tp=rack for several words, so what
# is typed comes as a line; files stand beside other answers; no blank after a folder.
_BASH = """\
%(complete_func)s() {
    local type value word=${COMP_WORDS[COMP_CWORD]}
    [[ $word == [:=] ]] && word=
    while IFS=, read -r type value; do
        if [[ $type == file ]]; then
            compopt -o filenames
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
        else
            COMPREPLY+=("$value")
            [[ $value == *[/:=] ]] && compopt -o nospace
        fi
    done < <(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" COMP_CWORD= \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Quiet(ShellComplete):
    """Offers nothing where a file cannot be read: a shell shows no messages."""

    def get_completions(
        self, args: list[str], incomplete: str
    ) -> list[CompletionItem[Any]]:
        """What to offer; nothing when that cannot be found out."""
        try:
            return super().get_completions(args, incomplete)
        except Exception:
            return []


@add_completion_class
class _Bash(_Quiet, BashComplete):
    source_template = _BASH
    _typed = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)[1:]
        # A blank ends a word, unless it stands in quotes.
        blank = line[-1:] if line[-1:].isspace() else ""
        ended = blank and not (words and words[-1].endswith(blank))
        self._typed = "" if ended or not words else words.pop()
        return words, self._typed

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """The answer without what bash takes for words before this one."""
        known = max(self._typed.rfind(mark) for mark in ":=") + 1
        value = str(item.value)
        if item.type == "plain" and value.startswith(self._typed[:known]):
            value = value[known:]
        return f"{item.type},{value}"


@add_completion_class
class _Zsh(_Quiet, ZshComplete):
    pass


@add_completion_class
class _Fish(_Quiet, FishComplete):
    # A list of hosts has commas of its own.
    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


_SHELLS = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


@click.command(
    cls=Command,
    help="""Print the script that completes words in a shell.

    \b
    bash, in ~/.bashrc:  source <(placer completion bash)
    zsh, in ~/.zshrc:    source <(placer completion zsh)
    fish, once:          placer completion fish
                         > ~/.config/fish/completions/placer.fish""",
    epilog="Example: source <(placer completion bash)",
)
@click.argument("shell", type=OneOf(list(_SHELLS)), metavar="bash|zsh|fish")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script of a shell."""
    root = context.find_root().command
    script = _SHELLS[shell](root, {}, "placer", COMPLETE).source()
    write_line(script)
