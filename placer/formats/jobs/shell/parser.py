"""A script's text as commands.

Source: POSIX.1-2024, Shell Command Language, section 2.10; GNU Bash Reference Manual.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from placer.formats.jobs.shell import syntax
from placer.formats.jobs.shell.syntax import MOST_DEPTH, Lexer, refuse_at
from placer.formats.jobs.shell.text import NOTHING, Text

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[([^\]\n]*)\])?(\+?)=")
DECLARES = ("export", "declare", "local", "readonly", "typeset")
_BREAKS = (";;", ";&", ";;&")
_ENDS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}", ")"})
_QUOTES = re.compile(r"[\"'\\]")
_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_EXPRESSION = re.compile(r"(?:^|(?<=;))[^;]*")
Nodes = tuple[syntax.Node, ...]


class Parser:
    """Reads commands one after the other."""

    def __init__(self, text: Text) -> None:
        self.lexer = Lexer(text)
        self._waiting: list[tuple[syntax.Redirection, str]] = []  # for documents
        self._depth = 0

    def script(self) -> Nodes:
        """All commands of the text."""
        commands = self._commands()
        if not self.lexer.is_over:
            self._unexpected()
        return commands

    def _commands(self) -> Nodes:
        """Commands up to a word or sign that ends a list of them."""
        found: list[syntax.Node] = []
        self._depth += 1
        if self._depth > MOST_DEPTH:
            refuse_at(self.lexer.text, self.lexer.at, "nested too deeply")
        while True:
            self._skip("\n", ";", "&")
            if self.lexer.is_over or self.lexer.peek() in {*_ENDS, *_BREAKS}:
                break
            found.append(self._chain())
        self._depth -= 1
        return tuple(found)

    def _skip(self, *signs: str) -> None:
        """Go over blanks and these signs, and here documents behind ends of lines."""
        lexer = self.lexer
        lexer.skip_blanks()
        while (sign := lexer.operator()) and sign in signs:
            lexer.at += len(sign)
            if sign == "\n":
                for redirection, mark in self._waiting:
                    redirection.document = self._document(redirection, mark)
                self._waiting.clear()
            lexer.skip_blanks()

    def _document(self, redirection: syntax.Redirection, mark: str) -> Text:
        lexer, raw = self.lexer, self.lexer.raw
        start, at = lexer.at, lexer.at
        tabs = "\t" if redirection.operator == "<<-" else ""
        while at < len(raw):
            end = raw.find("\n", at)
            end = len(raw) if end < 0 else end
            if raw[at:end].lstrip(tabs) == mark:
                lexer.at = min(end + 1, len(raw))
                return lexer.text.part(start, at)
            at = end + 1
        lexer.at = len(raw)
        return lexer.text.part(start, len(raw))

    def _chain(self) -> syntax.Node:
        """Commands joined by ``&&``, ``||`` and ``|``."""
        lexer = self.lexer
        links: list[tuple[str, syntax.Node]] = []
        sign = ""
        while True:
            lexer.skip_blanks()
            while (found := lexer.peek()) in ("!", "time"):
                sign += "!" if found == "!" else ""
                lexer.at += len(found)
                lexer.skip_blanks()
            links.append((sign, self._command()))
            lexer.skip_blanks()
            sign = lexer.operator()
            if sign not in ("&&", "||", "|", "|&"):
                is_alone = len(links) == 1 and not links[0][0]
                return links[0][1] if is_alone else syntax.Chain(tuple(links))
            lexer.at += len(sign)
            sign = "|" if sign == "|&" else sign
            self._skip("\n")

    def _command(self) -> syntax.Node:
        compound = _COMPOUNDS.get(self.lexer.peek())
        if compound is None:
            return self._simple()
        node = compound(self)
        self.lexer.skip_blanks()
        while self._redirection(syntax.Simple()):
            self.lexer.skip_blanks()
        return node

    def _expect(self, *words: str) -> str:
        self.lexer.skip_blanks()
        found = self.lexer.peek()
        if found not in words:
            self._unexpected(" or ".join(words))
        self.lexer.at += len(found)
        return found

    def _unexpected(self, instead: str = "") -> NoReturn:
        found = self.lexer.peek()[:40].replace("\n", " ").strip()
        message = f'unexpected "{found}"' if found else "the script ends too early"
        expected = f', expected "{instead}"' if instead else ""
        refuse_at(self.lexer.text, self.lexer.at, f"{message}{expected}")

    def _if(self) -> syntax.Node:
        self._expect("if")
        branches = [self._branch()]
        while (word := self._expect("elif", "else", "fi")) == "elif":
            branches.append(self._branch())
        otherwise: Nodes = ()
        if word == "else":
            otherwise = self._commands()
            self._expect("fi")
        for condition, body in reversed(branches):
            otherwise = (syntax.Choice(condition, body, otherwise),)
        return otherwise[0]

    def _branch(self) -> tuple[Nodes, Nodes]:
        condition = self._commands()
        self._expect("then")
        return condition, self._commands()

    def _case(self) -> syntax.Node:
        self._expect("case")
        self.lexer.skip_blanks()
        word = self.lexer.word()
        self._skip("\n")
        self._expect("in")
        branches: list[tuple[tuple[Text, ...], Nodes]] = []
        while True:
            self._skip("\n")
            if self.lexer.peek() == "esac":
                self._expect("esac")
                return syntax.Case(word, tuple(branches))
            branches.append((self._patterns(), self._commands()))
            if (sign := self.lexer.peek()) in _BREAKS:
                self.lexer.at += len(sign)
            elif sign != "esac":
                self._unexpected("esac")

    def _patterns(self) -> tuple[Text, ...]:
        if self.lexer.operator() == "(":
            self.lexer.at += 1
        patterns: list[Text] = []
        while True:
            self.lexer.skip_blanks()
            pattern = self.lexer.word()
            if not pattern.text:
                self._unexpected("a pattern")
            patterns.append(pattern)
            if self._expect("|", ")") == ")":
                return tuple(patterns)

    def _for(self) -> syntax.Node:
        lexer = self.lexer
        is_menu = self._expect("for", "select") == "select"
        lexer.skip_blanks()
        if lexer.raw.startswith("((", lexer.at):
            return self._count()
        name = lexer.word()
        words: list[Text] | None = None
        self._skip("\n")
        if lexer.peek() == "in":
            self._expect("in")
            words = []
            lexer.skip_blanks()
            while (word := lexer.word()).text:
                words.append(word)
                lexer.skip_blanks()
        given = None if words is None else tuple(words)
        return syntax.Loop(self._body(), name=name, words=given, is_menu=is_menu)

    def _count(self) -> syntax.Node:
        """``for (( first; condition; step ))``."""
        node = self._parentheses()
        text = node.expression if isinstance(node, syntax.Arithmetic) else NOTHING
        parts = [text.part(*m.span()) for m in _EXPRESSION.finditer(text.text)]
        if len(parts) != 3:
            self._unexpected("for (( a; b; c ))")
        first, condition, step = (
            (syntax.Arithmetic(part),) if part.text.strip() else () for part in parts
        )
        return syntax.Group((*first, syntax.Loop(self._body(), condition, step)))

    def _body(self) -> Nodes:
        self._skip("\n", ";", "&")
        self._expect("do")
        body = self._commands()
        self._expect("done")
        return body

    def _while(self) -> syntax.Node:
        is_until = self._expect("while", "until") == "until"
        condition = self._commands()
        if is_until:
            condition = (syntax.Chain((("!", syntax.Group(condition)),)),)
        return syntax.Loop(self._body(), condition)

    def _group(self, close: str = "}") -> syntax.Node:
        self.lexer.at += 1
        body = self._commands()
        self._expect(close)
        return syntax.Group(body, close == ")")

    def _parentheses(self) -> syntax.Node:
        """``(( expression ))`` or ``( commands )``."""
        lexer = self.lexer
        if lexer.raw.startswith("((", lexer.at):
            start = lexer.at + 1
            end = lexer.end_of_parentheses(start)
            if lexer.raw.startswith(")", end):
                lexer.at = end + 1
                return syntax.Arithmetic(lexer.text.part(start + 1, end - 1))
        return self._group(")")

    def _until(self, opened: str, close: str) -> tuple[Text, ...]:
        """Words up to what closes them, in ``[[`` with the operators between."""
        lexer, start = self.lexer, self.lexer.at
        lexer.at += len(opened)
        found: list[Text] = []
        while True:
            lexer.skip_blanks(lines=True)
            if lexer.is_over:
                refuse_at(lexer.text, start, f"{opened} is not closed")
            at, sign = lexer.at, lexer.operator()
            if sign and opened == "(" and sign != close:
                self._unexpected(close)
            lexer.at += len(sign)
            token = lexer.text.part(at, lexer.at) if sign else lexer.word()
            if token.text == close:
                return tuple(found)
            found.append(token)

    def _function(self, name: str = "") -> syntax.Node:
        lexer = self.lexer
        if not name:
            self._expect("function")
            lexer.skip_blanks()
            name = lexer.word().text
        if match := _PARENTHESES.match(lexer.raw, lexer.at):
            lexer.at = match.end()
        self._skip("\n")
        return syntax.Function(name, self._command())

    def _simple(self) -> syntax.Node:
        lexer, command = self.lexer, syntax.Simple()
        while True:
            lexer.skip_blanks()
            if self._redirection(command) or self._assignment(command):
                continue
            if lexer.operator() or lexer.is_over:
                break
            word = lexer.word()
            if not word.text:
                self._unexpected()
            command.words.append(word)
            if len(command.words) == 1 and not command.assignments:
                is_function = _PARENTHESES.match(lexer.raw, lexer.at)
                if is_function and not _QUOTES.search(word.text):
                    return self._function(word.text)
        if not (command.words or command.assignments or command.redirections):
            self._unexpected("a command")
        return command

    def _assignment(self, command: syntax.Simple) -> bool:
        """Read an assignment, where one may stand."""
        lexer = self.lexer
        match = _ASSIGNMENT.match(lexer.raw, lexer.at)
        is_other = command.words and command.words[0].text not in DECLARES
        if match is None or is_other:
            return False
        name = lexer.text.part(*match.span(1))
        index = lexer.text.part(*match.span(2)) if match[2] is not None else None
        lexer.at = match.end()
        is_array = lexer.raw.startswith("(", lexer.at)
        value = self._until("(", ")") if is_array else lexer.word()
        found = syntax.Assignment(name, value, index, bool(match[3]))
        command.assignments.append(found)
        return True

    def _redirection(self, command: syntax.Simple) -> bool:
        """Read a redirection, where one stands."""
        lexer = self.lexer
        sign = lexer.operator()
        bare = sign.lstrip("0123456789")
        if bare[:1] not in ("<", ">") and bare[:2] != "&>":
            return False
        lexer.at += len(sign)
        lexer.skip_blanks()
        target = lexer.word()
        if not target.text:
            self._unexpected("a file")
        quoted = _QUOTES.search(target.text) is not None
        command.redirections.append(syntax.Redirection(bare, target, is_quoted=quoted))
        if bare in ("<<", "<<-"):
            mark = _QUOTES.sub("", target.text)
            self._waiting.append((command.redirections[-1], mark))
        return True


_COMPOUNDS: dict[str, Callable[[Parser], syntax.Node]] = {
    "if": Parser._if,
    "case": Parser._case,
    "for": Parser._for,
    "select": Parser._for,
    "while": Parser._while,
    "until": Parser._while,
    "{": Parser._group,
    "(": Parser._parentheses,
    "[[": lambda parser: syntax.Condition(parser._until("[[", "]]")),
    "function": Parser._function,
}
