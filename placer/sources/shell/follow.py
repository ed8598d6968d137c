"""Follows a script without running anything: assignments, branches, commands.

A condition on what nobody sets is taken as if it were empty, as it is in a fresh shell.
Where it is compared with something that is noted, and can be taken the other way. A
loop over several things is followed once with its variable open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from placer.sources.findings import Asked, Place, Remark
from placer.sources.shell.builtins import (
    BUILTINS,
    DECLARES,
    ExitError,
    ReturnError,
    inner_scripts,
    keep_written,
)
from placer.sources.shell.conditions import Outcome, Tester, matches
from placer.sources.shell.parser import Parser
from placer.sources.shell.script import Command, Script
from placer.sources.shell.slurm import batch_variables
from placer.sources.shell.syntax import (
    Arithmetic,
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
from placer.sources.shell.text import Text, known, open_names, text_at, unknown
from placer.sources.shell.variables import Environment

MOST_NESTED = 20
_ASSIGN = re.compile(r"([A-Za-z_]\w*)\s*([-+*/]?)=(?!=)\s*(.*)", re.DOTALL)


class Shell:
    """Goes through a script and adds to a `Script` what it would do.

    Parameters
    ----------
    script : Script
    asked : Asked
    other : int
        Number of the doubtful branch to take the other way; none when below 0.
    """

    def __init__(self, script: Script, asked: Asked, other: int = -1) -> None:
        self.script = script
        self.asked = asked
        self.environment = Environment(script.source, asked)
        self.expander = self.environment.expander
        self._functions: dict[str, Function] = {}
        self._nested = 0
        self._other = other

    def run(self, text: Text) -> None:
        """Follow a whole script.

        Raises
        ------
        InputError
            If a part of it is not closed, or it makes too much text.
        """
        self.environment.allow(len(text.text))
        try:
            self.nest(text, ReturnError)
        except ExitError as end:
            self.script.ended = end.place
        self.script.variables = self.environment.texts()

    def nest(self, text: Text, *ends: type[Exception]) -> None:
        """Follow another script with these variables; some ways to end stay inside."""
        if self._nested >= MOST_NESTED:
            return
        for name, value in batch_variables(text):
            self.environment.default(name, value)
        self._nested += 1
        try:
            self._follow(Parser(text).script())
        except ends:
            pass
        finally:
            self._nested -= 1

    def calculate(self, expression: Text) -> bool:
        """Do what ``(( ))`` does; whether the result is not 0."""
        match = _ASSIGN.fullmatch(expression.text.strip())
        place = expression.place
        if match:
            name, sign, rest = match.groups()
            written = text_at(f"{name} {sign} ({rest})" if sign else rest, place)
            value = self.expander.number(written, place)
            self.environment.assign(name, value)
        else:
            value = self.expander.number(expression, place)
        return self._decide(
            Outcome(known(value.text) not in ("", "0"), open_names(value.text)), place
        )

    def _follow(self, nodes: Iterable[Node]) -> bool:
        """Follow commands; whether the last one succeeds."""
        status = True
        for node in nodes:
            status = self._node(node)
        return status

    def _node(self, node: Node) -> bool:
        self.environment.spend(1)
        match node:
            case Simple():
                return self._simple(node)
            case Chain():
                return self._chain(node)
            case Condition():
                return self._condition(node)
            case Arithmetic():
                return self.calculate(node.expression)
            case Group():
                return self._follow(node.body)
            case Choice():
                self._choice(node)
            case Case():
                self._case(node)
            case Loop():
                self._loop(node)
            case Function():
                self._functions[node.name] = node
        return True

    def _chain(self, node: Chain) -> bool:
        status = True
        for join_sign, link in node.links:
            sign = join_sign.rstrip("!")
            if (sign == "&&" and not status) or (sign == "||" and status):
                continue
            status = self._node(link) != join_sign.endswith("!")
        return status

    def _choice(self, node: Choice) -> None:
        for condition, body in node.branches:
            if condition is None or self._follow(condition):
                self._follow(body)
                return

    def _case(self, node: Case) -> None:
        word = self.expander.text(node.word)
        names, text = open_names(word.text), known(word.text)
        other = bool(names) and self._doubt(names, node.word.place)
        for patterns, body in node.branches:
            written = [known(self.expander.text(p).text) for p in patterns]
            if any(matches(text, pattern) for pattern in written) != other:
                self._follow(body)
                return

    def _loop(self, node: Loop) -> None:
        """Follow the body once, with the variable open where it has several values."""
        if node.condition and self._follow(node.condition) == node.until:
            return
        if node.name is not None and node.name.text:
            words = self.environment.given
            if node.words is not None:
                words = [w for raw in node.words for w in self.expander.words(raw)]
            if not words:
                return
            name, place = node.name.text, node.name.place
            value = words[0] if len(words) == 1 else unknown(name, place)
            self.environment.assign(name, value)
        self._follow(node.body)

    def _condition(self, node: Condition) -> bool:
        tokens = [self.expander.text(token).text for token in node.tokens]
        place = node.tokens[0].place if node.tokens else Place(self.script.source)
        return self._tested(tokens, place, patterns=True)

    def _tested(self, tokens: list[str], place: Place, *, patterns: bool) -> bool:
        tester = Tester(tokens, self._integer, self._is_set, patterns=patterns)
        return self._decide(tester.outcome(), place)

    def _integer(self, text: str) -> int:
        number = self.expander.number(text_at(text or "0", Place("")), Place(""))
        return int(number.text)  # one that is open raises ValueError

    def _is_set(self, name: str) -> bool:
        return self.environment.value(name) is not None

    def _decide(self, outcome: Outcome, place: Place) -> bool:
        if outcome.names:
            return self._doubt(outcome.names, place) != outcome.holds
        return outcome.holds

    def _doubt(self, names: list[str], place: Place) -> bool:
        """Note that a branch depends on what nobody sets; whether to take the other."""
        self.script.choices.append(Remark(", ".join(names), place))
        return len(self.script.choices) - 1 == self._other

    def _simple(self, node: Simple) -> bool:
        words = [word for raw in node.words for word in self.expander.words(raw)]
        keep_written(self, node, words)
        if not words or words[0].text in DECLARES:
            for assignment in node.assignments:
                self.environment.perform(assignment)
            return True
        return self._command(node, words)

    def _command(self, node: Simple, words: list[Text]) -> bool:
        first = words[0].text
        if first in ("[", "test"):
            tokens = [word.text for word in words[1:]]
            if first == "[" and tokens[-1:] == ["]"]:
                tokens.pop()
            return self._tested(tokens, words[0].place, patterns=False)
        if first in BUILTINS:
            return BUILTINS[first](self, words)
        if first in self._functions:
            self._call(self._functions[first], words[1:])
            return True
        environment = {
            assignment.name.text: self.expander.text(assignment.value)
            for assignment in node.assignments
            if isinstance(assignment.value, Text)
        }
        self.script.commands.append(Command(tuple(words), environment))
        for text in inner_scripts(self, node, words):
            self.nest(text, ReturnError, ExitError)
        return True

    def _call(self, function: Function, arguments: list[Text]) -> None:
        if self._nested >= MOST_NESTED:
            return
        before, self.environment.given = self.environment.given, arguments
        self._nested += 1
        self.environment.calls += 1
        try:
            self._follow(function.body)
        except ReturnError:
            pass
        finally:
            self._nested -= 1
            self.environment.calls -= 1
            self.environment.given = before
