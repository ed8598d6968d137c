"""Follows a script without running anything: assignments, branches, what it would run.

A condition on what nobody sets is taken as if it were empty, as it is in a fresh shell.
Where it is compared with something that is noted, and can be taken the other way. A loop over several things is followed once with its variable open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePath

from placer.errors import InputError, Problem
from placer.sources.findings import Asked, Place, Remark
from placer.sources.shell.conditions import Outcome, Tester, matches
from placer.sources.shell.expand import Expander, Value
from placer.sources.shell.outputs import printed
from placer.sources.shell.parser import Parser
from placer.sources.shell.script import Command, Script
from placer.sources.shell.syntax import (
    Arithmetic,
    Assignment,
    Case,
    Chain,
    Choice,
    Condition,
    Function,
    Group,
    Loop,
    Node,
    Simple,
)
from placer.sources.shell.text import (
    Text,
    join,
    known,
    open_names,
    text_at,
    text_of_file,
    unknown,
)

# Text that a script may make in all: a long one makes some thousand words.
MOST_TEXT = 64 * 1024 * 1024
MOST_NESTED = 20
_SHELLS = ("bash", "sh", "zsh", "/bin/bash", "/bin/sh")
_ASSIGN = re.compile(r"([A-Za-z_]\w*)\s*([-+*/]?)=(?!=)\s*(.*)", re.DOTALL)


class _ExitError(Exception):
    """The script ends here."""


class _ReturnError(Exception):
    """The function or the included file ends here."""


class Shell:
    """Variables, functions and arguments while a script is followed."""

    def __init__(self, script: Script, asked: Asked, other: int = -1) -> None:
        self.script = script
        self._other = other
        self.asked = asked
        self.expander = Expander(self)
        self._variables: dict[str, Value] = {}
        self._functions: dict[str, Function] = {}
        self._arguments: list[Text] = []
        self._nested = 0
        self._spent = 0

    def run(self, text: Text) -> None:
        """Follow a whole script.

        Raises
        ------
        InputError
            If a part of it is not closed, or it makes too much text.
        """
        self._batch_options(text)
        try:
            self._follow(Parser(text).script())
        except _ExitError as end:
            self.script.ended = end.args[0] if end.args else None
        except _ReturnError:
            pass
        place = Place(self.script.source)
        for name, value in self._variables.items():
            if isinstance(value, dict):
                blank = text_at(" ", place)
                parts = [part for item in value.values() for part in (item, blank)]
                value = join(parts[:-1])
            self.script.variables[name] = value

    def _batch_options(self, text: Text) -> None:
        """What Slurm sets by the ``#SBATCH`` lines."""
        for name, value in batch_variables(text):
            self._variables.setdefault(name, value)

    # What expansions ask for.

    def value(self, name: str) -> Value | None:
        """The value of a variable; None when neither a setting nor the script says."""
        given = self.asked.setting(name)
        if given is not None:
            return text_at(given, Place(f"--set {name}"))
        if name in self._variables:
            return self._variables[name]
        if name.isdecimal() and 0 < int(name) <= len(self._arguments):
            return self._arguments[int(name) - 1]
        place = Place(self.script.source)
        beside = f"./{PurePath(self.script.source).name}"
        usual = {
            "#": str(len(self._arguments)),
            "?": "0",
            "0": beside,
            "BASH_SOURCE": beside,
            "PWD": ".",
        }.get(name)
        return None if usual is None else text_at(usual, place)

    def assign(self, name: str, value: Text) -> None:
        """Set a variable, unless a setting does."""
        if self.asked.setting(name) is None:
            if value.is_open and _is_one_name(value):
                value = unknown(name, value.place)
            self._variables[name] = value

    def arguments(self) -> list[Text]:
        """The positional parameters."""
        return self._arguments

    def output(self, command: Text, place: Place) -> Text:
        """What a command prints, where that is plain."""
        return printed(command, place, self.expander)

    def spend(self, size: int) -> None:
        """Count text that is made.

        Raises
        ------
        InputError
            If it is too much.
        """
        self._spent += size
        if self._spent > MOST_TEXT:
            message = "the script makes more text than can be followed"
            raise InputError([Problem(message, self.script.source)])

    # Commands.

    def _follow(self, nodes: Iterable[Node]) -> bool:
        """Follow commands; whether the last one succeeds."""
        status = True
        for node in nodes:
            status = self._node(node)
        return status

    def _node(self, node: Node) -> bool:
        self.spend(1)
        match node:
            case Simple():
                return self._simple(node)
            case Chain():
                return self._chain(node)
            case Choice():
                self._choice(node)
            case Case():
                self._case(node)
            case Loop():
                self._loop(node)
            case Group():
                return self._follow(node.body)
            case Function():
                self._functions[node.name] = node
            case Condition():
                return self._decide(self._condition(node), node.tokens[:1])
            case Arithmetic():
                return self._arithmetic(node)
        return True

    def _chain(self, node: Chain) -> bool:
        status = True
        for join_sign, link in node.links:
            sign = join_sign.rstrip("!")
            if (sign == "&&" and not status) or (sign == "||" and status):
                continue
            status = self._node(link)
            if join_sign.endswith("!"):
                status = not status
        return status

    def _choice(self, node: Choice) -> None:
        for condition, body in node.branches:
            if condition is None or self._follow(condition):
                self._branch(body, node.head.place)
                return

    def _branch(self, body: tuple[Node, ...], place: Place) -> None:
        try:
            self._follow(body)
        except _ExitError:
            raise _ExitError(place) from None

    def _case(self, node: Case) -> None:
        word = self.expander.text(node.word)
        names, text = open_names(word.text), known(word.text)
        other = bool(names) and self._doubt(names, node.word.place)
        for patterns, body in node.branches:
            written = [known(self.expander.text(p).text) for p in patterns]
            if any(matches(text, pattern) for pattern in written) != other:
                self._branch(body, node.word.place)
                return

    def _loop(self, node: Loop) -> None:
        """Follow the body once, with the variable open where it has several values."""
        if node.words is None and node.name is None and node.condition:
            if self._follow(node.condition) == node.until:
                return
        elif node.name is not None and node.name.text:
            words = self._arguments
            if node.words is not None:
                words = [w for raw in node.words for w in self.expander.words(raw)]
            if not words:
                return
            name, place = node.name.text, node.name.place
            self.assign(name, words[0] if len(words) == 1 else unknown(name, place))
        self._follow(node.body)

    def _arithmetic(self, node: Arithmetic) -> bool:
        match = _ASSIGN.fullmatch(node.expression.text.strip())
        place = node.expression.place
        if match:
            name, sign, rest = match.groups()
            written = f"{name} {sign} ({rest})" if sign else rest
            value = self.expander.number(text_at(written, place), place)
            self.assign(name, value)
        else:
            value = self.expander.number(node.expression, place)
        names = open_names(value.text)
        if names:
            return self._doubt(names, place)
        return known(value.text) not in ("", "0")

    def _condition(self, node: Condition) -> Outcome:
        tokens = [self.expander.text(token).text for token in node.tokens]
        return self._tested(tokens, patterns=True)

    def _tested(self, tokens: list[str], *, patterns: bool) -> Outcome:
        return Tester(tokens, self._integer, self._is_set, patterns=patterns).outcome()

    def _integer(self, text: str) -> int:
        number = self.expander.number(text_at(text or "0", Place("")), Place(""))
        return int(number.text)  # one that is open raises ValueError

    def _is_set(self, name: str) -> bool:
        return self.value(name) is not None

    def _decide(self, outcome: Outcome, tokens: tuple[Text, ...]) -> bool:
        if outcome.names:
            place = tokens[0].place if tokens else Place(self.script.source)
            return self._doubt(outcome.names, place) != outcome.holds
        return outcome.holds

    def _doubt(self, names: list[str], place: Place) -> bool:
        """Note that a branch depends on what nobody sets; whether to take the other."""
        self.script.choices.append(Remark(", ".join(names), place))
        return len(self.script.choices) - 1 == self._other

    def _simple(self, node: Simple) -> bool:
        words = [word for raw in node.words for word in self.expander.words(raw)]
        first = words[0].text if words else ""
        self._documents(node, words)
        if not words or first in _DECLARES:
            for assignment in node.assignments:
                self._assign(assignment)
            return True
        environment = {
            assignment.name.text: self.expander.text(assignment.value)
            for assignment in node.assignments
            if isinstance(assignment.value, Text)
        }
        if first in ("[", "test"):
            tokens = [word.text for word in words[1:]]
            if first == "[" and tokens[-1:] == ["]"]:
                tokens.pop()
            return self._decide(self._tested(tokens, patterns=False), (words[0],))
        if first in _BUILTINS:
            return _BUILTINS[first](self, words)
        if first in self._functions:
            return self._call(self._functions[first], words[1:])
        self.script.commands.append(Command(tuple(words), environment))
        self._inner(node, words)
        return True

    def _assign(self, assignment: Assignment) -> None:
        name = assignment.name.text
        if isinstance(assignment.value, tuple):
            self._assign_array(name, assignment.value, append=assignment.append)
            return
        value = self.expander.text(assignment.value)
        if not value.text:
            value = text_at("", assignment.name.place)
        if assignment.index is not None:
            index = known(self.expander.text(assignment.index).text)
            array = self._variables.setdefault(name, {})
            if isinstance(array, dict):
                array[index] = value
            return
        before = self._variables.get(name) if assignment.append else None
        if isinstance(before, dict):
            before["0"] = join([before["0"], value]) if "0" in before else value
        elif before is not None:
            self.spend(len(before.text))
            self.assign(name, join([before, value]))
        else:
            self.assign(name, value)

    def _assign_array(self, name: str, raw: tuple[Text, ...], *, append: bool) -> None:
        """Set an array or add to one, which is not copied."""
        elements: list[tuple[str | None, Text]] = []
        for word in raw:
            keyed = re.match(r"\[([^\]]*)\]=", word.text)
            if keyed:
                index = known(self.expander.text(word.part(*keyed.span(1))).text)
                rest = word.part(keyed.end(), len(word.text))
                elements.append((index, self.expander.text(rest)))
            else:
                elements += [(None, found) for found in self.expander.words(word)]
        if self.asked.setting(name) is not None:
            return
        before = self._variables.get(name) if append else None
        array = before if isinstance(before, dict) else {}
        if isinstance(before, Text):
            array["0"] = before
        for index, element in elements:
            array[str(len(array)) if index is None else index] = element
        self._variables[name] = array

    def _documents(self, node: Simple, words: list[Text]) -> None:
        """Keep what a command writes into a file from a here document or by echo."""
        bodies = [r.document for r in node.redirections if r.document]
        targets = [
            r.target for r in node.redirections if r.operator in (">", ">>", ">|")
        ]
        if not targets or not words or len(targets) > 1:
            return
        first = words[0].text
        if bodies and first in ("cat", "tee"):
            body = bodies[-1]
            text = body.body if body.quoted else self._expanded(body.body)
        elif first in ("echo", "printf") and not bodies:
            blank = text_at("\n", words[0].place)
            text = join([part for word in words[1:] for part in (word, blank)])
        else:
            return
        target = self.expander.text(targets[0])
        self.script.files[target.text] = text

    def _expanded(self, body: Text) -> Text:
        return self.expander.text(body, quoted=True)

    def _inner(self, node: Simple, words: list[Text]) -> None:
        """Follow a script that a command is given as a here document or a text."""
        names = [word.text.rpartition("/")[2] for word in words]
        if names[0] in ("sbatch", "bash", "sh", "srun"):
            for redirection in node.redirections:
                if redirection.document:
                    body = redirection.document
                    text = body.body if body.quoted else self._expanded(body.body)
                    self._batch_options(text)
                    self._nest(lambda text=text: self._follow(Parser(text).script()))
        for number, name in enumerate(names[:-2]):
            if name in _SHELLS and re.fullmatch(r"-[a-z]*c", words[number + 1].text):
                text = words[number + 2]
                self._nest(lambda text=text: self._follow(Parser(text).script()))
                return

    def _nest(self, follow: Callable[[], object]) -> None:
        """Follow an inner script, whose exit ends it alone."""
        if self._nested >= MOST_NESTED:
            return
        self._nested += 1
        try:
            follow()
        except (_ExitError, _ReturnError):
            pass
        finally:
            self._nested -= 1

    def _call(self, function: Function, arguments: list[Text]) -> bool:
        before, self._arguments = self._arguments, arguments
        if self._nested < MOST_NESTED:
            self._nested += 1
            try:
                self._follow(function.body)
            except _ReturnError:
                pass
            finally:
                self._nested -= 1
        self._arguments = before
        return True

    # Builtins.

    def _source(self, words: list[Text]) -> bool:
        """Follow a file beside the script; one that is missing is noted."""
        if len(words) < 2:
            return True
        written = words[1]
        name = known(written.text)
        included = self.asked.include(written.place.source, name)
        if included is None:
            included = self.asked.include(self.script.source, name)
        if included is None or self._nested >= MOST_NESTED:
            remark = Remark(f"source {name}", written.place, "it is not there")
            self.script.left_out.append(remark)
            return True
        text, shown = included
        self._nested += 1
        try:
            self._follow(Parser(text_of_file(text, shown)).script())
        except _ReturnError:
            pass
        finally:
            self._nested -= 1
        return True

    def _eval(self, words: list[Text]) -> bool:
        blank = text_at(" ", words[0].place)
        text = join([part for word in words[1:] for part in (word, blank)])
        if self._nested < MOST_NESTED:
            self._nested += 1
            try:
                self._follow(Parser(text).script())
            finally:
                self._nested -= 1
        return True

    def _exec(self, words: list[Text]) -> bool:
        if len(words) > 1:
            self.script.commands.append(Command(tuple(words[1:]), {}))
        return True

    def _exit(self, words: list[Text]) -> bool:
        raise _ExitError()

    def _return(self, words: list[Text]) -> bool:
        raise _ReturnError()

    def _shift(self, words: list[Text]) -> bool:
        count = words[1].text if len(words) > 1 else "1"
        del self._arguments[: int(count) if count.isdecimal() else 0]
        return True

    def _unset(self, words: list[Text]) -> bool:
        for word in words[1:]:
            self._variables.pop(word.text, None)
        return True

    def _read(self, words: list[Text]) -> bool:
        for word in words[1:]:
            if word.text.isidentifier():
                self.assign(word.text, unknown(word.text, word.place))
        return True

    def _let(self, words: list[Text]) -> bool:
        for word in words[1:]:
            self._arithmetic(Arithmetic(word))
        return True

    def _nothing(self, words: list[Text]) -> bool:
        return words[0].text != "false"


_DECLARES = ("export", "declare", "local", "readonly", "typeset")
_BUILTINS: dict[str, Callable[[Shell, list[Text]], bool]] = {
    "source": Shell._source,
    ".": Shell._source,
    "eval": Shell._eval,
    "exec": Shell._exec,
    "exit": Shell._exit,
    "return": Shell._return,
    "shift": Shell._shift,
    "unset": Shell._unset,
    "read": Shell._read,
    "let": Shell._let,
    "true": Shell._nothing,
    "false": Shell._nothing,
    ":": Shell._nothing,
    "set": Shell._nothing,
    "cd": Shell._nothing,
}


def _is_one_name(value: Text) -> bool:
    """Whether a value is one unknown part and nothing else."""
    return len(open_names(value.text)) == 1 and not known(value.text)


_SBATCH = re.compile(r"^#SBATCH[ \t]+([^\n]*)", re.MULTILINE)
_OPTION = re.compile(r"(--[a-z-]+|-[Nn])(?:=|[ \t]+|(?<=-[Nn]))(\S+)")


def batch_variables(text: Text) -> Iterable[tuple[str, Text]]:
    """Variables that Slurm sets for a job with the ``#SBATCH`` lines of a script.

    Source: sbatch's page, output environment variables.
    """
    names = {
        "--nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
        "-N": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
        "--ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
        "-n": ("SLURM_NTASKS", "SLURM_NPROCS"),
        "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
        "--gpus-per-node": ("SLURM_GPUS_PER_NODE",),
        "--gres": ("SLURM_GPUS_ON_NODE",),
    }
    for line in _SBATCH.finditer(text.text):
        for option in _OPTION.finditer(line[1]):
            count = re.search(r"(?:^|:)([0-9]{1,7})$", option[2])
            if option[1] in names and count:
                start = line.start(1) + option.start(2) + count.start(1)
                value = text.part(start, start + len(count[1]))
                for name in names[option[1]]:
                    yield name, value
