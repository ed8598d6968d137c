"""Commands that change how a script goes on, and commands that hold another script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from placer.sources.findings import Place, Remark
from placer.sources.shell.script import Command
from placer.sources.shell.text import (
    Text,
    join,
    known,
    text_at,
    text_of_file,
    unknown,
)

if TYPE_CHECKING:
    from placer.sources.shell.follow import Shell
    from placer.sources.shell.syntax import HereDocument, Simple

DECLARES = ("export", "declare", "local", "readonly", "typeset")
_SHELL = re.compile(r"(?:.*/)?(?:ba|z)?sh")
_COMMAND = re.compile(r"-[a-z]*c")
_RUN_DOCUMENTS = ("sbatch", "srun", "bash", "sh", "zsh")


class ExitError(Exception):
    """The script ends here."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place


class ReturnError(Exception):
    """The function or the included file ends here."""


def keep_written(shell: Shell, node: Simple, words: list[Text]) -> None:
    """Keep what a command writes into a file from a here document or by echo."""
    if not (words and node.redirections):
        return
    targets = [r.target for r in node.redirections if r.operator in (">", ">>", ">|")]
    if len(targets) != 1:
        return
    bodies = [r.document for r in node.redirections if r.document]
    if bodies and words[0].text in ("cat", "tee"):
        text = _body(shell, bodies[-1])
    elif words[0].text in ("echo", "printf") and not bodies:
        text = _spaced(words[1:], "\n")
    else:
        return
    shell.script.files[shell.expander.text(targets[0]).text] = text


def inner_scripts(shell: Shell, node: Simple, words: list[Text]) -> Iterator[Text]:
    """The scripts that a command is given: here documents, and ``bash -c`` texts."""
    if words[0].text.rpartition("/")[2] in _RUN_DOCUMENTS:
        for redirection in node.redirections:
            if redirection.document:
                yield _body(shell, redirection.document)
    for number, word in enumerate(words[:-2]):
        if not _SHELL.fullmatch(word.text):
            continue
        if _COMMAND.fullmatch(words[number + 1].text):
            yield words[number + 2]
            return


def _body(shell: Shell, document: HereDocument) -> Text:
    if document.quoted:
        return document.body
    return shell.expander.text(document.body, quoted=True)


def _spaced(words: list[Text], between: str) -> Text:
    place = words[0].place if words else Place("")
    return join([p for word in words for p in (word, text_at(between, place))])


def _source(shell: Shell, words: list[Text]) -> bool:
    """Follow a file beside the script; one that is missing is noted."""
    if len(words) < 2:
        return True
    written = words[1]
    name = known(written.text)
    included = shell.asked.include(written.place.source, name)
    if included is None:
        included = shell.asked.include(shell.script.source, name)
    if included is None:
        remark = Remark(f"source {name}", written.place, "it is not there")
        shell.script.left_out.append(remark)
        return True
    text = text_of_file(*included)
    shell.environment.allow(len(text.text))
    shell.nest(text, ReturnError)
    return True


def _eval(shell: Shell, words: list[Text]) -> bool:
    shell.nest(_spaced(words[1:], " "))
    return True


def _exec(shell: Shell, words: list[Text]) -> bool:
    if len(words) > 1:
        shell.script.commands.append(Command(tuple(words[1:]), {}))
    return True


def _exit(_shell: Shell, words: list[Text]) -> bool:
    raise ExitError(words[0].place)


def _return(_shell: Shell, _words: list[Text]) -> bool:
    raise ReturnError


def _shift(shell: Shell, words: list[Text]) -> bool:
    count = words[1].text if len(words) > 1 else "1"
    del shell.environment.given[: int(count[:6]) if count.isdecimal() else 0]
    return True


def _unset(shell: Shell, words: list[Text]) -> bool:
    for word in words[1:]:
        shell.environment.drop(word.text)
    return True


def _read(shell: Shell, words: list[Text]) -> bool:
    for word in words[1:]:
        if word.text.isidentifier():
            shell.environment.assign(word.text, unknown(word.text, word.place))
    return True


def _let(shell: Shell, words: list[Text]) -> bool:
    return all(shell.calculate(word) for word in words[1:])


def _nothing(_shell: Shell, words: list[Text]) -> bool:
    return words[0].text != "false"


BUILTINS: dict[str, Callable[[Shell, list[Text]], bool]] = {
    "source": _source,
    ".": _source,
    "eval": _eval,
    "exec": _exec,
    "exit": _exit,
    "return": _return,
    "shift": _shift,
    "unset": _unset,
    "read": _read,
    "let": _let,
    "true": _nothing,
    "false": _nothing,
    ":": _nothing,
    "set": _nothing,
    "cd": _nothing,
}
