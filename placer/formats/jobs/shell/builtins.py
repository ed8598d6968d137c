"""Commands that change how a script goes on, and commands that hold another script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from placer.formats.jobs.findings import Place, Remark
from placer.formats.jobs.shell.conditions import FAILS, HOLDS, Outcome
from placer.formats.jobs.shell.outputs import formatted
from placer.formats.jobs.shell.script import SHELL, TAKES_SCRIPT
from placer.formats.jobs.shell.text import (
    Text,
    join,
    known,
    opens,
    readable,
    roots,
    text_at,
    text_of_file,
    unknown,
)
from placer.formats.jobs.shell.ways import BreakError, ExitError, ReturnError

if TYPE_CHECKING:
    from placer.formats.jobs.shell.follow import Shell
    from placer.formats.jobs.shell.syntax import HereDocument, Simple

_WITH_VALUE = "pdnNtuicCO"  # options of read with a word, but for -a
_BLANK_SIGNS = " \t\n"
DECLARES = ("export", "declare", "local", "readonly", "typeset")
# What always succeeds, or is taken to.
SUCCEED = (
    "echo", "printf", "mkdir", "touch", "sleep", "date", "cat", "tee", "pushd",
    "popd",
)  # fmt: skip
_RUN_DOCUMENTS = ("sbatch", "srun", "bash", "sh", "zsh")


def read_words(shell: Shell, node: Simple, words: list[Text]) -> Outcome:
    """Set the variables of ``read``, by a plain here string or to what is not known."""
    names, array = _names(words[1:])
    line = _here_string(shell, node)
    if line is None:
        return _unknown(shell, [*names, *array] or ["REPLY"], words)
    separators = _separators(shell, node)
    parts = _parts(line.split("\n")[0], separators)
    place = words[0].place
    if array:
        shell.environment.set_array(array[0], [text_at(p, place) for p in parts])
        return HOLDS
    for number, name in enumerate(names or ["REPLY"]):
        text = parts[number] if number < len(parts) else ""
        if number == len(names) - 1 and len(parts) > len(names):
            text = (separators or " ")[0].join(parts[number:])
        shell.environment.assign(name, text_at(text, place))
    return HOLDS


def read_array(shell: Shell, node: Simple, words: list[Text]) -> Outcome:
    """Set the array of ``mapfile`` to the lines of a plain here string."""
    names, _ = _names(words[1:])
    name = names[-1] if names else "MAPFILE"
    lines = _here_string(shell, node)
    if lines is None:
        return _unknown(shell, [name], words)
    place = words[0].place
    shell.environment.set_array(name, [text_at(x, place) for x in lines.split("\n")])
    return HOLDS


def _unknown(shell: Shell, names: Sequence[str], words: list[Text]) -> Outcome:
    command = words[0].text
    for name in names:
        value = unknown(name, words[0].place, f"{command} {name}")
        shell.environment.assign(name, value)
    return Outcome(False, (f"{command} {names[0]}",))


def _names(words: Sequence[Text]) -> tuple[list[str], list[str]]:
    """Variables, and that of the option ``-a``."""
    names: list[str] = []
    array: list[str] = []
    option = ""
    for word in words:
        if option == "a":
            array.append(word.text)
        elif not option and re.fullmatch(r"-[A-Za-z]+", word.text):
            option = word.text[-1]
            option = option if option == "a" or option in _WITH_VALUE else ""
            continue
        elif not option and word.text.isidentifier():
            names.append(word.text)
        option = ""
    return names, array


def _here_string(shell: Shell, node: Simple) -> str | None:
    """What ``<<<`` gives; None without one that is known."""
    given = [r.target for r in node.redirections if r.operator == "<<<"]
    if not given:
        return None
    text = shell.expander.text(given[-1])
    return None if text.is_open else text.text


def _separators(shell: Shell, node: Simple) -> str:
    """The signs of ``IFS`` that are no blanks."""
    own = [
        assignment.value
        for assignment in node.assignments
        if assignment.name.text == "IFS" and isinstance(assignment.value, Text)
    ]
    value = shell.expander.text(own[-1]) if own else shell.environment.value("IFS")
    text = value.text if isinstance(value, Text) else ""
    return "".join(sign for sign in text if sign not in _BLANK_SIGNS)


def _parts(line: str, separators: str) -> list[str]:
    if not separators:
        return line.split()
    return [part.strip() for part in re.split(f"[{re.escape(separators)}]", line)]


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
    name = shell.expander.text(targets[0]).text
    shell.environment.state.files[name] = text


def inner_scripts(shell: Shell, node: Simple, words: list[Text]) -> Iterator[Text]:
    """The scripts that a command is given: here documents, and ``bash -c`` texts."""
    if words[0].text.rpartition("/")[2] in _RUN_DOCUMENTS:
        for redirection in node.redirections:
            if redirection.document:
                yield _body(shell, redirection.document)
    for word, option, text in zip(words, words[1:], words[2:], strict=False):
        if SHELL.fullmatch(word.text) and TAKES_SCRIPT.fullmatch(option.text):
            yield text
            return


def _body(shell: Shell, document: HereDocument) -> Text:
    if document.quoted:
        return document.body
    return shell.expander.text(document.body, quoted=True)


def _spaced(words: list[Text], between: str) -> Text:
    place = words[0].place if words else Place("")
    return join([p for word in words for p in (word, text_at(between, place))])


def _source(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    """Follow a file beside the script; one that is missing is noted."""
    if len(words) < 2:
        return FAILS
    written = words[1]
    name = known(written.text)
    included = shell.asked.include(written.place.source, name)
    if included is None:
        included = shell.asked.include(shell.script.source, name)
    if included is None:
        shown = name or readable(written.text)
        if shell.ways.is_sure():
            shell.script.missing.append(Remark(shown, written.place))
        else:  # it may not be wanted
            remark = Remark(f"source {shown}", written.place, "it is not there")
            shell.script.left_out.append(remark)
        return Outcome(False, (f"source {name}",))
    text = text_of_file(*included)
    shell.environment.allow(len(text.text))
    shell.nest(text, ReturnError)
    return HOLDS


def _eval(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    text = _spaced(words[1:], " ")
    unsure = [part for part in opens(text.text) if not part.is_unset]
    if unsure and not known(text.text).strip():
        shown = f"eval {readable(text.text).strip()}"
        remark = Remark(shown, words[0].place, "what it does is not known")
        shell.script.left_out.append(remark)
        return Outcome(False, (shown,))
    shell.nest(text)
    return HOLDS


def _exec(shell: Shell, node: Simple, words: list[Text]) -> Outcome:
    """Another program instead of the script."""
    if len(words) > 1:
        shell.start(node, words[1:], {})
        raise ExitError(words[0].place)
    return HOLDS


def _exit(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    raise ExitError(words[0].place, shell.ways.taken_for_empty())


def _return(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    """``return`` with a number, or as the last command ended."""
    if len(words) < 2:
        raise ReturnError(shell.environment.status)
    if words[1].is_open:
        raise ReturnError(Outcome(False, roots(words[1].text)))
    raise ReturnError(Outcome(words[1].text == "0"))


def _break(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    if not shell.ways.loops:
        return HOLDS
    levels = min(_number(words), len(shell.ways.loops))
    raise BreakError(levels, is_over=words[0].text == "break")


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
    name = words[2].text
    written = f"$(printf {' '.join(readable(word.text) for word in words[3:])})"
    value = formatted(words[3:], words[0].place)
    if name.isidentifier():
        nowhere = unknown(name, words[0].place, written)
        shell.environment.assign(name, nowhere if value is None else value)
    return HOLDS


def _let(shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    found = [shell.calculate(word) for word in words[1:]]
    return found[-1] if found else FAILS


def _nothing(_shell: Shell, _node: Simple, words: list[Text]) -> Outcome:
    return FAILS if words[0].text == "false" else HOLDS


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
    "read": read_words,
    "mapfile": read_array,
    "readarray": read_array,
    "let": _let,
    "true": _nothing,
    "false": _nothing,
    ":": _nothing,
    "cd": _nothing,
}


def builtin(words: list[Text]) -> Callable[[Shell, Simple, list[Text]], Outcome] | None:
    """What follows a command that the shell does itself; None for any other."""
    if words[0].text == "printf":
        return _printf if len(words) > 2 and words[1].text == "-v" else None
    return BUILTINS.get(words[0].text)
