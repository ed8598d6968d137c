"""A script's text as commands.

Source: POSIX.1-2024, Shell Command Language, section 2.10; GNU Bash Reference Manual.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from placer.formats.jobs.shell.lexer import MOST_DEPTH, Lexer, refuse_at
from placer.formats.jobs.shell.syntax import (
    Arithmetic,
    Assignment,
    Case,
    Chain,
    Choice,
    Condition,
    Count,
    Function,
    Group,
    HereDocument,
    Loop,
    Node,
    Redirection,
    Simple,
)
from placer.formats.jobs.shell.text import NOTHING, Text

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[([^\]\n]*)\])?(\+?)=")
_DECLARES = ("export", "declare", "local", "readonly", "typeset")
_ENDS = frozenset(
    {"then", "elif", "else", "fi", "do", "done", "esac", "}", ")", ";;", ";&", ";;&"}
)
_QUOTES = re.compile(r"[\"'\\]")
_FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")


class Parser:
    """Reads commands one after the other."""

    def __init__(self, text: Text) -> None:
        self.lexer = Lexer(text)
        self._waiting: list[tuple[Redirection, str, bool, bool]] = []
        self._depth = 0
        self._peeked = (-1, "")

    def script(self) -> tuple[Node, ...]:
        """All commands of the text."""
        commands = self.commands()
        if self.lexer.at < len(self.lexer.raw):
            self._unexpected()
        return commands

    def commands(self) -> tuple[Node, ...]:
        """Commands up to a word or sign that ends a list of them."""
        found: list[Node] = []
        self._depth += 1
        if self._depth > MOST_DEPTH:
            refuse_at(self.lexer.text, self.lexer.at, "nested too deeply")
        while True:
            self._skip_separators()
            if self.lexer.at >= len(self.lexer.raw) or self._peek() in _ENDS:
                break
            found.append(self._chain())
        self._depth -= 1
        return tuple(found)

    def _peek(self) -> str:
        """The sign or the plain word that comes next."""
        lexer = self.lexer
        if sign := lexer.operator():
            return sign
        if self._peeked[0] != lexer.at:
            word = lexer.raw[lexer.at : lexer.end_of_word(lexer.at)]
            self._peeked = (lexer.at, word)
        return self._peeked[1]

    def _skip_separators(self) -> None:
        while True:
            self.lexer.skip_blanks()
            if self.lexer.operator() == "\n":
                self._end_line()
            elif self.lexer.operator() in (";", "&"):
                self.lexer.at += 1
            else:
                return

    def _end_line(self) -> None:
        """Go over the end of a line and the here documents that follow it."""
        self.lexer.at += 1
        for redirection, mark, quoted, strip in self._waiting:
            redirection.document = HereDocument(self._document(mark, strip), quoted)
        self._waiting.clear()

    def _document(self, mark: str, strip: bool) -> Text:
        lexer, raw = self.lexer, self.lexer.raw
        start = at = lexer.at
        while at < len(raw):
            end = raw.find("\n", at)
            end = len(raw) if end < 0 else end
            line = raw[at:end]
            if (line.lstrip("\t") if strip else line) == mark:
                lexer.at = min(end + 1, len(raw))
                return lexer.text.part(start, at)
            at = end + 1
        lexer.at = len(raw)
        return lexer.text.part(start, len(raw))

    def _chain(self) -> Node:
        """Commands joined by ``&&``, ``||`` and ``|``."""
        links: list[tuple[str, Node]] = []
        join = ""
        while True:
            self.lexer.skip_blanks()
            while self._peek() in ("!", "time"):
                join += "!" if self._peek() == "!" else ""
                self.lexer.word()
                self.lexer.skip_blanks()
            links.append((join, self._command()))
            self.lexer.skip_blanks()
            join = self.lexer.operator()
            if join not in ("&&", "||", "|", "|&"):
                return (
                    links[0][1]
                    if len(links) == 1 and not links[0][0]
                    else Chain(tuple(links))
                )
            self.lexer.at += len(join)
            join = "|" if join == "|&" else join
            self._skip_lines()

    def _skip_lines(self) -> None:
        self.lexer.skip_blanks()
        while self.lexer.operator() == "\n":
            self._end_line()
            self.lexer.skip_blanks()

    def _command(self) -> Node:
        compound = _COMPOUNDS.get(self._peek())
        if compound is None:
            return self._simple()
        node, behind = compound(self), Simple()
        self.lexer.skip_blanks()
        while self._redirection(behind):
            self.lexer.skip_blanks()
        return node

    def _expect(self, *words: str) -> str:
        self.lexer.skip_blanks()
        found = self._peek()
        if found not in words:
            self._unexpected(" or ".join(words))
        self.lexer.at += len(found)
        return found

    def _unexpected(self, instead: str = "") -> NoReturn:
        found = self._peek()[:40].replace("\n", " ").strip()
        message = f'unexpected "{found}"' if found else "the script ends too early"
        expected = f', expected "{instead}"' if instead else ""
        refuse_at(self.lexer.text, self.lexer.at, f"{message}{expected}")

    def _if(self) -> Node:
        start = self.lexer.at
        self._expect("if")
        branches: list[tuple[tuple[Node, ...] | None, tuple[Node, ...]]] = []
        condition = self.commands()
        head = self.lexer.text.part(start, self.lexer.at)
        self._expect("then")
        while True:
            branches.append((condition, self.commands()))
            word = self._expect("elif", "else", "fi")
            if word == "elif":
                condition = self.commands()
                self._expect("then")
                continue
            if word == "else":
                branches.append((None, self.commands()))
                self._expect("fi")
            return Choice(tuple(branches), head)

    def _case(self) -> Node:
        self._expect("case")
        self.lexer.skip_blanks()
        word = self.lexer.word()
        self._skip_lines()
        self._expect("in")
        branches: list[tuple[tuple[Text, ...], tuple[Node, ...]]] = []
        while True:
            self._skip_lines()
            if self._peek() == "esac":
                self._expect("esac")
                return Case(word, tuple(branches))
            patterns = self._patterns()
            body = self.commands()
            branches.append((patterns, body))
            if self._peek() in (";;", ";&", ";;&"):
                self.lexer.at += len(self._peek())
            elif self._peek() != "esac":
                self._unexpected("esac")

    def _patterns(self) -> tuple[Text, ...]:
        if self.lexer.operator() == "(":
            self.lexer.at += 1
        patterns = []
        while True:
            self.lexer.skip_blanks()
            pattern = self.lexer.word()
            if not pattern.text:
                self._unexpected("a pattern")
            patterns.append(pattern)
            if self._expect("|", ")") == ")":
                return tuple(patterns)

    def _for(self) -> Node:
        is_menu = self._expect("for", "select") == "select"
        self.lexer.skip_blanks()
        if self.lexer.raw.startswith("((", self.lexer.at):
            return self._count()
        name = self.lexer.word()
        words: list[Text] | None = None
        self._skip_lines()
        if self._peek() == "in":
            self._expect("in")
            words = []
            self.lexer.skip_blanks()
            while (word := self.lexer.word()).text:
                words.append(word)
                self.lexer.skip_blanks()
        given = None if words is None else tuple(words)
        return Loop(name, given, (), self._body(), is_menu=is_menu)

    def _count(self) -> Node:
        node = self._parentheses()
        written = node.expression if isinstance(node, Arithmetic) else NOTHING
        parts = list(written.divided(";"))
        if len(parts) != 3:
            self._unexpected("for (( a; b; c ))")
        return Count((parts[0], parts[1], parts[2]), self._body())

    def _body(self) -> tuple[Node, ...]:
        self._skip_separators()
        self._expect("do")
        body = self.commands()
        self._expect("done")
        return body

    def _while(self) -> Node:
        until = self._expect("while", "until") == "until"
        condition = self.commands()
        self._expect("do")
        body = self.commands()
        self._expect("done")
        return Loop(None, None, condition, body, until)

    def _group(self, close: str = "}") -> Node:
        self.lexer.at += 1
        body = self.commands()
        self._expect(close)
        return Group(body, close == ")")

    def _parentheses(self) -> Node:
        """``(( expression ))`` or ``( commands )``."""
        lexer = self.lexer
        if lexer.raw.startswith("((", lexer.at):
            start = lexer.at
            lexer.at += 1
            end = lexer.end_of_parentheses(lexer.at)
            if lexer.raw.startswith(")", end):
                lexer.at = end + 1
                return Arithmetic(lexer.text.part(start + 2, end - 1))
            lexer.at = start
        return self._group(")")

    def _condition(self) -> Node:
        """Tokens up to ``]]``."""
        lexer = self.lexer
        lexer.at += 2
        tokens: list[Text] = []
        start = lexer.at
        while True:
            lexer.skip_blanks(lines=True)
            if lexer.at >= len(lexer.raw):
                refuse_at(lexer.text, start - 2, "[[ is not closed")
            sign = lexer.operator()
            token = lexer.text.part(lexer.at, lexer.at + len(sign))
            if sign:
                lexer.at += len(sign)
            else:
                token = lexer.word()
            if token.text == "]]":
                return Condition(tuple(tokens))
            tokens.append(token)

    def _function(self) -> Node:
        self._expect("function")
        self.lexer.skip_blanks()
        name = self.lexer.word().text
        if match := _FUNCTION.match(self.lexer.raw, self.lexer.at):
            self.lexer.at = match.end()
        self._skip_lines()
        return Function(name, (self._command(),))

    def _simple(self) -> Node:
        lexer, command = self.lexer, Simple()
        while True:
            lexer.skip_blanks()
            if self._redirection(command) or self._assignment(command):
                continue
            if lexer.operator() or lexer.at >= len(lexer.raw):
                break
            word = lexer.word()
            if not word.text:
                self._unexpected()
            command.words.append(word)
            if len(command.words) == 1 and not command.assignments:
                match = _FUNCTION.match(lexer.raw, lexer.at)
                if match and not _QUOTES.search(word.text):
                    lexer.at = match.end()
                    self._skip_lines()
                    return Function(word.text, (self._command(),))
        if not (command.words or command.assignments or command.redirections):
            self._unexpected("a command")
        return command

    def _assignment(self, command: Simple) -> bool:
        """Read an assignment, where one may stand."""
        lexer = self.lexer
        if command.words and command.words[0].text not in _DECLARES:
            return False
        match = _ASSIGNMENT.match(lexer.raw, lexer.at)
        if match is None:
            return False
        name = lexer.text.part(*match.span(1))
        index = lexer.text.part(*match.span(2)) if match[2] is not None else None
        lexer.at = match.end()
        array = lexer.raw.startswith("(", lexer.at)
        value = self._array() if array else lexer.word()
        command.assignments.append(Assignment(name, value, index, bool(match[3])))
        return True

    def _array(self) -> tuple[Text, ...]:
        lexer = self.lexer
        start = lexer.at
        lexer.at += 1
        words: list[Text] = []
        while True:
            lexer.skip_blanks(lines=True)
            if lexer.at >= len(lexer.raw):
                refuse_at(lexer.text, start, "( is not closed")
            if lexer.operator() == ")":
                lexer.at += 1
                return tuple(words)
            word = lexer.word()
            if not word.text:
                self._unexpected(")")
            words.append(word)

    def _redirection(self, command: Simple) -> bool:
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
        redirection = Redirection(bare, target)
        command.redirections.append(redirection)
        if bare in ("<<", "<<-"):
            quoted = bool(_QUOTES.search(target.text))
            mark = _QUOTES.sub("", target.text)
            self._waiting.append((redirection, mark, quoted, bare == "<<-"))
        return True


_COMPOUNDS: dict[str, Callable[[Parser], Node]] = {
    "if": Parser._if,
    "case": Parser._case,
    "for": Parser._for,
    "select": Parser._for,
    "while": Parser._while,
    "until": Parser._while,
    "{": Parser._group,
    "(": Parser._parentheses,
    "[[": Parser._condition,
    "function": Parser._function,
}
