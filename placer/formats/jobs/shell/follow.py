"""Follows a script without running anything: assignments, branches, loops, commands.

Where it is not known whether a condition holds, both branches are followed. What they
leave differing is unknown from there on, with what decides it; a branch that ends the
script is left, as the script that trains goes on. What nobody sets is empty where a
script asks whether it is, as in a fresh shell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from placer.formats.jobs.findings import Asked, Place
from placer.formats.jobs.shell.builtins import (
    DECLARES,
    SUCCEED,
    builtin,
    inner_scripts,
    keep_written,
)
from placer.formats.jobs.shell.conditions import FAILS, HOLDS, Outcome, Tester, matches
from placer.formats.jobs.shell.parser import Parser
from placer.formats.jobs.shell.script import Command, Script, batch_variables
from placer.formats.jobs.shell.syntax import (
    Arithmetic,
    Case,
    Chain,
    Choice,
    Condition,
    Count,
    Function,
    Group,
    Loop,
    Node,
    Simple,
)
from placer.formats.jobs.shell.text import Text, known, opens, readable, roots, text_at
from placer.formats.jobs.shell.variables import Environment
from placer.formats.jobs.shell.ways import (
    ControlError,
    ExitError,
    ReturnError,
    Ways,
    follow_count,
    follow_loop,
)

if TYPE_CHECKING:
    from placer.formats.jobs.shell.either import Value

MOST_NESTED = 20
_LONGEST_SHOWN = 60

Branches = Sequence[tuple[tuple[Node, ...] | None, tuple[Node, ...]]]


class Shell:
    """Goes through a script and adds to a `Script` what it would do.

    ``passes``: of all loops together.
    """

    def __init__(self, script: Script, asked: Asked) -> None:
        self.script = script
        self.asked = asked
        self.environment = Environment(script.source, asked, script.either)
        self.expander = self.environment.expander
        self.ways = Ways(self.environment)
        self.passes = 0
        self._nested = 0
        self._locals: list[dict[str, Value | None]] = []

    def run(self, text: Text) -> None:
        """Follow a whole script."""
        self.environment.allow(len(text.text))
        try:
            self.nest(text, ReturnError)
        except ExitError as end:
            self.script.ended = end
        self.script.variables = self.environment.texts()
        self.script.files = self.environment.state.files

    def nest(self, text: Text, *ends: type[ControlError]) -> None:
        """Follow another script with these variables; some ways to end stay inside."""
        if self._nested >= MOST_NESTED:
            return
        for name, value in batch_variables(text):
            self.environment.default(name, value)
        self._nested += 1
        self.ways.returns.append([])
        try:
            self.follow(Parser(text).script())
        except ends:
            pass
        finally:
            self._nested -= 1
            returned = self.ways.returns.pop()
        self.ways.settle(returned)

    def calculate(self, expression: Text) -> Outcome:
        """Do what ``(( ))`` does; whether the result is not 0."""
        value = self.expander.number(expression, expression.place).text
        absent = ("1",) if "$#" in expression.text else ()
        return Outcome(value not in ("", "0"), roots(value), absent)

    def follow(self, nodes: Iterable[Node]) -> Outcome:
        """Follow commands; whether the last one succeeds."""
        status = HOLDS
        for node in nodes:
            status = self._node(node)
            self.environment.status = status
        return status

    def start(
        self, node: Simple, words: list[Text], environment: dict[str, Text]
    ) -> Outcome:
        """Note a command that the script would run, and follow a script in it."""
        causes = tuple(
            dict.fromkeys(name for names in self.ways.doubts for name in names)
        )
        self.script.commands.append(Command(tuple(words), environment, causes))
        for text in inner_scripts(self, node, words):
            self.nest(text, ReturnError, ExitError)
        if words[0].text in SUCCEED:
            return HOLDS
        shown = readable(" ".join(word.text for word in words[:8]))
        return Outcome(False, (shown[:_LONGEST_SHOWN],))

    def _node(self, node: Node) -> Outcome:
        self.environment.spend(1)
        return _DOES[type(node)](self, node)

    def _group(self, node: Group) -> Outcome:
        way = partial(self.follow, node.body)
        return self._inside(way) if node.is_inner else self.ways.branch(HOLDS, way)

    def _define(self, node: Function) -> Outcome:
        self.environment.state.functions[node.name] = node
        return HOLDS

    def _inside(self, way: Callable[[], Outcome]) -> Outcome:
        """Follow what runs in a shell of its own, and changes files alone."""
        before = self.environment.kept()
        loops, self.ways.loops = self.ways.loops, []
        self.ways.returns.append([])
        try:
            status = self.ways.branch(HOLDS, way)
        except ControlError:
            status = Outcome(False, ("what runs in a shell of its own",))
        finally:
            self.ways.loops = loops
            self.ways.returns.pop()
        before.files = self.environment.state.files
        self.environment.restore(before)
        return status

    def _chain(self, links: Sequence[tuple[str, Node]], status: Outcome) -> Outcome:
        is_left_out = False
        for number, (join_sign, link) in enumerate(links):
            sign = join_sign.rstrip("!")
            if sign in ("&&", "||"):
                if status.names:
                    rest = links[number:]
                    ways = [partial(self._chain, rest, way) for way in (HOLDS, FAILS)]
                    return self.ways.fork(status.names, ways)
                is_left_out = status.holds != (sign == "&&")
            if is_left_out:
                continue
            following = links[number + 1][0] if number + 1 < len(links) else ""
            is_piped = "|" in (sign, following.rstrip("!"))
            if is_piped and not isinstance(link, Simple):
                found = self._inside(partial(self._node, link))
            else:
                found = self.ways.branch(status, partial(self._node, link))
            status = found.negated() if join_sign.endswith("!") else found
        return status

    def _choice(self, branches: Branches) -> Outcome:
        if not branches:
            return HOLDS
        (condition, body), rest = branches[0], branches[1:]
        outcome = HOLDS if condition is None else self.follow(condition)
        ways = [partial(self.follow, body), partial(self._choice, rest)]
        if outcome.names:
            return self.ways.fork(outcome.names, ways)
        return self.ways.branch(outcome, ways[0 if outcome.holds else 1])

    def _case(self, node: Case) -> Outcome:
        word = self.expander.text(node.word)
        names = list(roots(word.text))
        bodies: list[tuple[Node, ...]] = []
        for patterns, body in node.branches:
            fits: bool | None = False
            for pattern in patterns:
                written = self.expander.text(pattern).text
                found = self._fits(word.text, written)
                names += roots(written)
                fits = (
                    True if True in (fits, found) else None if found is None else fits
                )
            if fits is not False:
                bodies.append(body)
            if fits:
                break
        else:
            bodies.append(())
        ways = [partial(self.follow, body) for body in bodies]
        if len(ways) == 1:
            return self.ways.branch(HOLDS, ways[0])
        return self.ways.fork(tuple(dict.fromkeys(names)), ways)

    def _fits(self, text: str, pattern: str) -> bool | None:
        """Whether a word fits a pattern; None where that is not known."""
        if pattern == "*":
            return True
        if roots(text) or roots(pattern):
            return None
        return matches(text, pattern)

    def _condition(self, node: Condition) -> Outcome:
        tokens = [self.expander.text(token).text for token in node.tokens]
        return self._tested(tokens, node.tokens, patterns=True)

    def _tested(
        self, tokens: list[str], raw: Sequence[Text], *, patterns: bool
    ) -> Outcome:
        tester = Tester(
            tokens,
            self._integer,
            lambda name: self.environment.value(name) is not None,
            self.environment.is_empty,
            self._is_there,
            patterns=patterns,
        )
        outcome = tester.outcome()
        if any(word.text.strip('"') == "$#" for word in raw):
            return Outcome(outcome.holds, outcome.names, (*outcome.absent, "1"))
        return outcome

    def _integer(self, text: str) -> int:
        number = self.expander.number(text_at(text or "0", Place("")), Place(""))
        return int(number.text)  # one that is open raises ValueError

    def _is_there(self, name: str) -> bool | None:
        """Whether a file is there; not known where it lies nowhere near."""
        if name in self.environment.state.files:
            return True
        included = self.asked.include(self.script.source, known(name))
        return None if included is None else True

    def _simple(self, node: Simple) -> Outcome:
        words = [word for raw in node.words for word in self.expander.words(raw)]
        keep_written(self, node, words)
        if not words or words[0].text in DECLARES:
            if words and words[0].text not in ("export", "readonly"):
                self._keep_local(node, words)
            if words and words[0].text == "export":
                names = [item.name.text for item in node.assignments]
                names += [word.text for word in words[1:] if word.text.isidentifier()]
                self.script.exported |= dict.fromkeys(names)
            for assignment in node.assignments:
                self.environment.perform(assignment)
            return HOLDS if words else self._assigned(node)
        return self._command(node, words)

    def _assigned(self, node: Simple) -> Outcome:
        """An assignment succeeds if the command does whose output it takes."""
        for assignment in node.assignments:
            value = self.environment.value(assignment.name.text)
            if isinstance(value, Text) and "$(" in readable(value.text):
                return Outcome(False, tuple(part.name for part in opens(value.text)))
        return HOLDS

    def _keep_local(self, node: Simple, words: list[Text]) -> None:
        """Keep the values that variables have outside the function that hides them."""
        if not self._locals or any(word.text == "-g" for word in words):
            return
        values, kept = self.environment.state.values, self._locals[-1]
        bare = [word.text for word in words[1:] if word.text.isidentifier()]
        for name in (*(item.name.text for item in node.assignments), *bare):
            kept.setdefault(name, values.get(name))
        for name in bare:
            self.environment.assign(name, text_at("", words[0].place))

    def _command(self, node: Simple, words: list[Text]) -> Outcome:
        first = words[0].text
        if first in ("[", "test"):
            tokens = [word.text for word in words[1:]]
            if first == "[" and tokens[-1:] == ["]"]:
                tokens.pop()
            return self._tested(tokens, node.words, patterns=False)
        if does := builtin(words):
            return does(self, node, words)
        function = self.environment.state.functions.get(first)
        if function is not None:
            return self._call(function, words[1:])
        environment = {
            assignment.name.text: self.expander.text(assignment.value)
            for assignment in node.assignments
            if isinstance(assignment.value, Text)
        }
        return self.start(node, words, environment)

    def _call(self, function: Function, arguments: list[Text]) -> Outcome:
        if self._nested >= MOST_NESTED:
            return HOLDS
        before = self.environment.state.given
        self.environment.state.given = arguments
        self._nested += 1
        self.environment.calls += 1
        self.ways.returns.append([])
        self._locals.append({})
        try:
            status = self.ways.branch(HOLDS, partial(self.follow, function.body))
        except ReturnError as error:
            status = error.status
        finally:
            self._nested -= 1
            self.environment.calls -= 1
            returned, hidden = self.ways.returns.pop(), self._locals.pop()
        self.ways.settle(returned)
        if returned:
            names = dict.fromkeys(name for _, causes in returned for name in causes)
            status = Outcome(False, tuple(names))
        state = self.environment.state
        state.given = before
        for name, value in hidden.items():
            if value is None:
                state.values.pop(name, None)
            else:
                state.values[name] = value
        return status


_DOES: dict[type, Callable[[Shell, Any], Outcome]] = {
    Simple: Shell._simple,
    Chain: lambda shell, node: shell._chain(node.links, HOLDS),
    Condition: Shell._condition,
    Arithmetic: lambda shell, node: shell.calculate(node.expression),
    Group: Shell._group,
    Choice: lambda shell, node: shell._choice(node.branches),
    Case: Shell._case,
    Loop: lambda shell, node: shell.ways.branch(
        HOLDS, partial(follow_loop, shell, node)
    ),
    Count: lambda shell, node: shell.ways.branch(
        HOLDS, partial(follow_count, shell, node)
    ),
    Function: Shell._define,
}
