"""Commands that change how a script goes on, and commands that hold another script."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from placer.formats.jobs.findings import Remark
from placer.formats.jobs.shell.conditions import FAILS, HOLDS, Outcome
from placer.formats.jobs.shell.outputs import formatted, printed_by
from placer.formats.jobs.shell.script import SHELL, TAKES_SCRIPT
from placer.formats.jobs.shell.syntax import Redirection, Simple
from placer.formats.jobs.shell.text import (
    NOTHING,
    Text,
    join,
    known,
    numbered,
    opens,
    readable,
    roots,
    text_at,
    text_of_file,
    unknown,
)
from placer.formats.jobs.shell.ways import JumpError

if TYPE_CHECKING:
    from placer.formats.jobs.shell.follow import Shell

_OPTION = re.compile(r"-[A-Za-z]*?([apdnNtuicCO]?)")  # of read; the last has a word
_BLANK_SIGNS = " \t\n"
# What always succeeds, or is taken to.
SUCCEED = (
    "echo", "printf", "mkdir", "touch", "sleep", "date", "cat", "tee", "pushd",
    "popd",
)  # fmt: skip
_RUN_DOCUMENTS = ("sbatch", "srun", "bash", "sh", "zsh")


def keep_written(shell: Shell, node: Simple, words: list[Text]) -> None:
    """Keep what a command writes into a file from a here document or by echo."""
    targets = [r for r in node.redirections if r.operator in (">", ">>", ">|")]
    bodies = [r for r in node.redirections if r.document]
    writes = ("cat", "tee") if bodies else ("echo", "printf")
    if len(targets) != 1 or not words or words[0].text not in writes:
        return
    environment, place = shell.environment, words[0].place
    name = shell.expander.text(targets[0].target).text
    if bodies:
        text = _body(shell, bodies[-1])
    else:
        written = readable(" ".join(word.text for word in words))
        made = printed_by(words, place, environment)
        text = made or unknown(written, place, written)
        text = join([text, text_at("\n" if words[0].text == "echo" else "", place)])
    before = environment.state.files.get(name, NOTHING)
    environment.spend(len(before.text))
    is_added = targets[0].operator == ">>"
    environment.state.files[name] = join([before, text]) if is_added else text


def inner_scripts(shell: Shell, node: Simple, words: list[Text]) -> Iterator[Text]:
    """The scripts that a command is given: here documents, and ``bash -c`` texts."""
    if words[0].text.rpartition("/")[2] in _RUN_DOCUMENTS:
        yield from (_body(shell, r) for r in node.redirections if r.document)
    for word, option, text in zip(words, words[1:], words[2:], strict=False):
        if SHELL.fullmatch(word.text) and TAKES_SCRIPT.fullmatch(option.text):
            yield text
            return


def _body(shell: Shell, redirection: Redirection) -> Text:
    """The here document of a redirection, expanded unless it is quoted."""
    document = redirection.document
    if document is None or redirection.is_quoted:
        return document or redirection.target
    return shell.expander.text(document, quoted=True)


def _read(shell: Shell, node: Simple, words: list[Text]) -> Outcome:
    """Set variables to the words of a here string that is known, or an array.

    ``mapfile`` and ``readarray`` take its lines instead.
    """
    command, place = words[0].text, words[0].place
    names: list[str] = []
    array = "" if command == "read" else "MAPFILE"
    for before, word in itertools.pairwise(words):
        option = _OPTION.fullmatch(before.text)
        takes = option[1] if option else ""
        if takes == "a" or (array and not takes and word.text.isidentifier()):
            array = word.text
        elif not takes and word.text.isidentifier():
            names.append(word.text)
    wanted = [*names, array] if array else names or ["REPLY"]
    given = [r.target for r in node.redirections if r.operator == "<<<"]
    text = shell.expander.text(given[-1]) if given else None
    if text is None or text.is_open:
        for name in wanted:
            value = unknown(name, place, f"{command} {name}")
            shell.environment.assign(name, value)
        return Outcome(False, (f"{command} {wanted[0]}",))
    signs = _separators(shell, node)
    line = text.text.split("\n")[0]
    parts = line.split()
    if command != "read":
        parts = text.text.split("\n")
    elif signs:
        parts = [part.strip() for part in re.split(f"[{re.escape(signs)}]", line)]
    if array:
        shell.environment.assign(array, numbered(text_at(p, place) for p in parts))
        return HOLDS
    last = len(wanted) - 1
    parts = [*parts[:last], (signs or " ")[0].join(parts[last:])]
    for name, part in itertools.zip_longest(wanted, parts, fillvalue=""):
        shell.environment.assign(name, text_at(part, place))
    return HOLDS


def _separators(shell: Shell, node: Simple) -> str:
    """The signs of ``IFS`` that are no blanks."""
    value = shell.environment.value("IFS")
    for assignment in node.assignments:
        if assignment.name.text == "IFS" and isinstance(assignment.value, Text):
            value = shell.expander.text(assignment.value)
    text = value.text if isinstance(value, Text) else ""
    return "".join(sign for sign in text if sign not in _BLANK_SIGNS)


def _source(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    """Follow a file beside the script; one that is missing is noted."""
    if len(words) < 2:
        return FAILS
    written = words[1]
    name = known(written.text)
    sources = (written.place.source, shell.script.source)
    tried = (shell.asked.include(source, name) for source in sources)
    included = next(filter(None, tried), None)
    if included is None:
        shown = name or readable(written.text)
        if not shell.ways.doubts:
            shell.script.missing.append(Remark(shown, written.place))
        else:  # it may not be wanted
            remark = Remark(f"source {shown}", written.place, "it is not there")
            shell.script.left_out.append(remark)
        return Outcome(False, (f"source {name}",))
    text = text_of_file(*included)
    shell.environment.allow(len(text.text))
    return shell.nest(text)


def _eval(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    text = join(words[1:], " ")
    unsure = [part for part in opens(text.text) if not part.is_unset]
    if unsure and not known(text.text).strip():
        shown = f"eval {readable(text.text).strip()}"
        remark = Remark(shown, words[0].place, "what it does is not known")
        shell.script.left_out.append(remark)
        return Outcome(False, (shown,))
    return shell.nest(text, "eval")


def _exec(shell: Shell, node: Simple, words: list[Text]) -> Outcome:
    """Another program instead of the script."""
    if len(words) > 1:
        shell.start(node, words[1:], {})
        raise JumpError(None, words[0].place)
    return HOLDS


def _exit(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    raise JumpError(None, words[0].place, names=shell.ways.taken_for_empty())


def _return(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    """``return`` with a number, or as the last command ended."""
    status = shell.environment.status
    if len(words) > 1:
        status = Outcome(words[1].text == "0", roots(words[1].text))
    raise JumpError(shell.ways.frame("function"), words[0].place, status)


def _break(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    kind = "loop" if words[0].text == "break" else "pass"
    frame = shell.ways.frame(kind, _number(words))
    if frame is None:
        return HOLDS
    raise JumpError(frame, words[0].place)


def _shift(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    count = _number(words)
    given = shell.environment.state.given
    shell.environment.state.given = given[count:]
    return HOLDS if len(given) >= count else FAILS


def _number(words: list[Text]) -> int:
    text = words[1].text if len(words) > 1 else "1"
    return max(1, int(text)) if text.isdecimal() and len(text) < 7 else 1


def _set(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    """``set --`` replaces the positional parameters."""
    texts = [word.text for word in words]
    if "--" in texts:
        shell.environment.state.given = words[texts.index("--") + 1 :]
    return HOLDS


def _getopts(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    for name in (*(word.text for word in words[2:3]), "OPTARG"):
        shell.environment.assign(name, unknown(name, words[0].place, f"${name}"))
    if not shell.environment.arguments():
        return Outcome(False, (), ("1",))
    return Outcome(False, ("1",))


def _unset(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    for word in words[1:]:
        shell.environment.state.values.pop(word.text, None)
    return HOLDS


def _printf(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    """``printf -v X``: what it would print becomes the value of a variable."""
    name, place = words[2].text, words[0].place
    if name.isidentifier():
        written = f"$(printf {' '.join(readable(word.text) for word in words[3:])})"
        value = formatted(words[3:], place) or unknown(name, place, written)
        shell.environment.assign(name, value)
    return HOLDS


BUILTINS: dict[str, Callable[[Shell, Simple, list[Text]], Outcome]] = {
    "source": _source,
    ".": _source,
    "eval": _eval,
    "exec": _exec,
    "exit": _exit,
    "return": _return,
    "break": _break,
    "continue": _break,
    "shift": _shift,
    "set": _set,
    "getopts": _getopts,
    "unset": _unset,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "let": lambda shell, _, words: [FAILS, *map(shell.calculate, words[1:])][-1],
    "true": lambda *_: HOLDS,
    "false": lambda *_: FAILS,
    ":": lambda *_: HOLDS,
    "cd": lambda *_: HOLDS,
}


def builtin(words: list[Text]) -> Callable[[Shell, Simple, list[Text]], Outcome] | None:
    """What follows a command that the shell does itself; None for any other."""
    if words[0].text == "printf":
        return _printf if len(words) > 2 and words[1].text == "-v" else None
    return BUILTINS.get(words[0].text)
