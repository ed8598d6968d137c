"""A pseudo terminal, and what is to be seen on it."""

import fcntl
import os
import pty
import re
import select
import struct
import termios

_TOKEN = re.compile(r"\x1b\[(\d*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")
# Within this time whatever was written has arrived, s.
_ARRIVED_S = 0.1


class Terminal:
    """A terminal that knows the sequences that the command sends, and no others."""

    def __init__(self, columns=80, rows=24):
        self._own, self.side = pty.openpty()
        self.raw = ""  # all that arrived
        self.is_broken = False  # whether a line was too long, or went above the top
        self._streams = []
        self._grid, self._at = [""], (0, 0)
        self.resize(columns, rows)

    def __enter__(self):
        return self

    def __exit__(self, _kind, _error, _traceback):
        for stream in self._streams:
            stream.close()
        os.close(self._own)
        os.close(self.side)

    def be_stderr(self, monkeypatch, encoding="utf-8", **environ):
        """Make it the standard error of this process."""
        stream = os.fdopen(os.dup(self.side), "w", encoding=encoding, errors="replace")
        self._streams.append(stream)
        monkeypatch.setattr("sys.stderr", stream)
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            monkeypatch.delenv(name, raising=False)
        for name, value in ({"TERM": "xterm"} | environ).items():
            monkeypatch.setenv(name, value)
        return self

    def resize(self, columns, rows):
        """Give it another size; what stands there stays, but for what is too much."""
        self.columns, self.rows = columns, rows
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, size)

    def seen(self):
        """Its lines, without empty ones at the end."""
        text = ""
        while select.select([self._own], [], [], _ARRIVED_S)[0]:
            text += os.read(self._own, 65536).decode()
        self.raw += text
        for token in _TOKEN.finditer(text):
            self._take(*token.groups())
        lines = [line.rstrip() for line in self._grid]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _take(self, count, order, move, text):
        row, column = self._at
        line = self._grid[row]
        if text:
            before = line[:column].ljust(column)
            self._grid[row] = before + text + line[column + len(text) :]
            self._at = row, column + len(text)
            self.is_broken |= column + len(text) > self.columns
        elif move == "\r":
            self._at = row, 0
        elif move == "\n":
            if row == len(self._grid) - 1:
                self._grid.append("")
            self._at = row + 1, column
        elif order == "A":
            up = row - int(count or 1)
            self.is_broken |= up < max(len(self._grid) - self.rows, 0)
            self._at = up, column
        elif order in ("J", "K"):
            self._grid[row] = line[:column]
            if order == "J":
                del self._grid[row + 1 :]
        else:
            assert order == "m"
