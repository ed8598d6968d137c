"""Follows a script without running anything: assignments, branches, loops, commands.

Where it is not known whether a condition holds, both branches are followed. What they
leave differing is unknown from there on, with what decides it; a branch that ends the
script is left, as the script that trains goes on. What nobody sets is empty where a
script asks whether it is, as in a fresh shell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from placer.formats.jobs.findings import Asked
from placer.formats.jobs.shell import syntax
from placer.formats.jobs.shell.builtins import (
    SUCCEED,
    builtin,
    inner_scripts,
    keep_written,
)
from placer.formats.jobs.shell.conditions import FAILS, HOLDS, Outcome, Tester, matches
from placer.formats.jobs.shell.parser import DECLARES, Parser
from placer.formats.jobs.shell.script import Command, Script, batch_variables
from placer.formats.jobs.shell.text import Text, Value, opens, readable, roots, text_at
from placer.formats.jobs.shell.variables import Environment
from placer.formats.jobs.shell.ways import JumpError, Way, Ways, follow_loop

MOST_NESTED = 20
_LONGEST_SHOWN = 60


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
            self.nest(text)
        except JumpError as end:
            self.script.ended = end
        self.script.variables = self.environment.texts()
        self.script.files = self.environment.state.files

    def nest(self, text: Text, kind: str = "function") -> Outcome:
        """Follow another script with these variables, as a frame of a kind."""
        if self._nested < MOST_NESTED:
            for name, value in batch_variables(text):
                known = self.environment.state.values.get(name, value)
                self.environment.assign(name, known)
            self._deeper(kind, lambda: self.follow(Parser(text).script()))
        return HOLDS

    def _deeper(self, kind: str, way: Way) -> Outcome:
        """Follow a function or a file."""
        self._nested += 1
        try:
            return self.ways.within(kind, way)
        finally:
            self._nested -= 1

    def calculate(self, expression: Text) -> Outcome:
        """Do what ``(( ))`` does; whether the result is not 0."""
        value = self.expander.number(expression, expression.place).text
        absent = ("1",) if "$#" in expression.text else ()
        return Outcome(value not in ("", "0"), roots(value), absent)

    def follow(self, nodes: Iterable[syntax.Node]) -> Outcome:
        """Follow commands; whether the last one succeeds."""
        status = HOLDS
        for node in nodes:
            status = self._node(node)
            self.environment.status = status
        return status

    def start(
        self, node: syntax.Simple, words: list[Text], environment: dict[str, Text]
    ) -> Outcome:
        """Note a command that the script would run, and follow a script in it."""
        command = Command(tuple(words), environment, self.ways.causes())
        self.script.commands.append(command)
        for text in inner_scripts(self, node, words):
            self.ways.apart(partial(self.nest, text))
        if words[0].text in SUCCEED:
            return HOLDS
        shown = readable(" ".join(word.text for word in words[:8]))
        return Outcome(False, (shown[:_LONGEST_SHOWN],))

    def _node(self, node: syntax.Node) -> Outcome:
        self.environment.spend(1)
        match node:
            case syntax.Simple():
                return self._simple(node)
            case syntax.Chain():
                return self._chain(node.links, HOLDS)
            case syntax.Condition():
                tokens = [self.expander.text(token).text for token in node.tokens]
                return self._tested(tokens, node.tokens, patterns=True)
            case syntax.Arithmetic():
                return self.calculate(node.expression)
            case syntax.Choice():
                return self._choice(node)
            case syntax.Case():
                return self._case(node)
            case syntax.Loop():
                return self.ways.within("loop", partial(follow_loop, self, node))
            case syntax.Function():
                self.environment.state.functions[node.name] = node
                return HOLDS
            case syntax.Group():
                way = partial(self.follow, node.body)
                is_inner = node.is_inner
                return self._inside(way) if is_inner else self.ways.branch(HOLDS, way)

    def _inside(self, way: Way) -> Outcome:
        """Follow what runs in a shell of its own, and changes files alone."""
        before = self.environment.kept()
        status = self.ways.apart(way)
        before.files = self.environment.state.files
        self.environment.restore(before)
        return status

    def _chain(
        self, links: Sequence[tuple[str, syntax.Node]], status: Outcome
    ) -> Outcome:
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
            if is_piped and not isinstance(link, syntax.Simple):
                found = self._inside(partial(self._node, link))
            else:
                found = self.ways.branch(status, partial(self._node, link))
            status = found.negated() if join_sign.endswith("!") else found
        return status

    def _choice(self, node: syntax.Choice) -> Outcome:
        outcome = self.follow(node.condition)
        ways = [partial(self.follow, way) for way in (node.body, node.otherwise)]
        if outcome.names:
            return self.ways.fork(outcome.names, ways)
        return self.ways.branch(outcome, ways[0 if outcome.holds else 1])

    def _case(self, node: syntax.Case) -> Outcome:
        word = self.expander.text(node.word).text
        names = list(roots(word))
        bodies: list[tuple[syntax.Node, ...]] = []
        for patterns, body in node.branches:
            written = [self.expander.text(pattern).text for pattern in patterns]
            names += roots("".join(written))
            fits = {
                None if roots(word + one) and one != "*" else matches(word, one)
                for one in written
            }
            if fits != {False}:
                bodies.append(body)
            if True in fits:
                break
        else:
            bodies.append(())
        ways = [partial(self.follow, body) for body in bodies]
        if len(ways) == 1:
            return self.ways.branch(HOLDS, ways[0])
        return self.ways.fork(tuple(dict.fromkeys(names)) or ("case",), ways)

    def _tested(
        self, tokens: list[str], raw: Sequence[Text], *, patterns: bool
    ) -> Outcome:
        outcome = Tester(tokens, self.environment, patterns=patterns).outcome()
        if any(word.text.strip('"') == "$#" for word in raw):
            return Outcome(outcome.holds, outcome.names, (*outcome.absent, "1"))
        return outcome

    def _simple(self, node: syntax.Simple) -> Outcome:
        words = [word for raw in node.words for word in self.expander.words(raw)]
        keep_written(self, node, words)
        first = words[0].text if words else ""
        if words and first not in DECLARES:
            return self._command(node, words)
        bare = [word.text for word in words[1:] if word.text.isidentifier()]
        names = [*(item.name.text for item in node.assignments), *bare]
        if first == "export":
            self.script.exported |= dict.fromkeys(names)
        elif first not in ("", "readonly") and self._locals:
            self._keep_local(names, words)
        for assignment in node.assignments:
            self.environment.perform(assignment)
        return HOLDS if words else self._assigned(node)

    def _assigned(self, node: syntax.Simple) -> Outcome:
        """An assignment succeeds if the command does whose output it takes."""
        for assignment in node.assignments:
            value = self.environment.value(assignment.name.text)
            if isinstance(value, Text) and "$(" in readable(value.text):
                return Outcome(False, tuple(part.name for part in opens(value.text)))
        return HOLDS

    def _keep_local(self, names: list[str], words: list[Text]) -> None:
        """Keep the values that variables have outside the function that hides them."""
        texts = [word.text for word in words]
        if "-g" in texts:
            return
        for name in names:
            self._locals[-1].setdefault(name, self.environment.state.values.get(name))
            if name in texts:
                self.environment.assign(name, text_at("", words[0].place))

    def _command(self, node: syntax.Simple, words: list[Text]) -> Outcome:
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

    def _call(self, function: syntax.Function, arguments: list[Text]) -> Outcome:
        if self._nested >= MOST_NESTED:
            return HOLDS
        before = self.environment.state.given
        self.environment.state.given = arguments
        self.environment.calls += 1
        self._locals.append({})
        try:
            status = self._deeper("function", partial(self.follow, (function.body,)))
        finally:
            self.environment.calls -= 1
            hidden = self._locals.pop()
        state = self.environment.state
        state.given = before
        for name, value in hidden.items():
            if value is None:
                state.values.pop(name, None)
            else:
                state.values[name] = value
        return status
