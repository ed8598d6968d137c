"""The one way for data of a command out, and what the standard streams can show."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

import placer
from placer.cli.interrupt import interrupts
from placer.documents import files

if TYPE_CHECKING:
    from placer.report.columns import Look

    Found = placer.Allocation | placer.Sweep | placer.Tuning
_LEAST, _MOST = 20, 120  # columns; prose over 120 is hard to read
_Row = TypeVar("_Row", bound=Mapping[str, Any])


def write_made(
    plan: placer.Plan, options: dict[str, Any], summary: Callable[[Look], str]
) -> None:
    """Write the plan to its file, and what the user asked to see to stdout."""
    output = options["output"]
    to_file = output not in (None, "-")
    if to_file:
        write_plan(output, plan)
    if output == "-" or options["format_name"] == "json":
        write_plan("-", plan)
    elif not (to_file and options["quiet"]):
        write_line(summary(look_of_stdout()).rstrip())


@contextmanager
def writing(path: str) -> Iterator[None]:
    """A context in which ``path`` is written to its end, and is then told.

    Nothing is told of standard output, or by a command that is quiet.
    """
    with interrupts.writing(path):
        yield
        context = click.get_current_context(silent=True)
        quiet = context is not None and context.params.get("quiet")
        if path != "-" and not quiet:
            click.echo(f"wrote {path}", err=True)


def output_path(given: str | None, source: str, kind: str, suffix: str) -> str:
    """Where a page or a picture goes: as ``-o`` says, else no terminal is filled.

    ``given``: what ``-o`` says. ``source``: what is shown: a file or ``KIND:VALUE``.
    ``kind`` and ``suffix``: what it is shown as. The file is named by all three.
    """
    if given is not None:
        return given
    if not is_terminal():
        return "-"
    name = PurePath(source.removeprefix("plan:").removeprefix("hostfile:")).name
    stem = re.sub(r"(\.json)?(\.gz|\.zst)?$", "", name)
    stem = re.sub(r"[^\w.-]+", "-", stem).strip("-.")
    return f"{stem or 'plan'}-{kind}.{suffix}"


def is_terminal() -> bool:
    """Whether standard output is one."""
    return sys.stdout is not None and sys.stdout.isatty()


def write_text(path: str, text: str) -> None:
    """Write all of ``text`` to ``path``; ``-`` is standard output.

    Raises `OutputError` if it cannot be written.
    """
    with writing(path):
        files.write_text(path, text)


def write_document(path: str, document: Mapping[str, Any]) -> None:
    """Write a document as YAML where the name of the file says so, else as JSON."""
    from placer.placement.plan_file import json_text

    is_yaml = path.lower().endswith((".yaml", ".yml"))
    write_text(path, (yaml_text if is_yaml else json_text)(document))


def yaml_text(document: Mapping[str, Any]) -> str:
    """A document as YAML."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes no references, which readers of placer's files refuse."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
            return True

    style: dict[str, Any] = {"default_flow_style": None, "width": 10**9}
    text: str = yaml.dump(document, Dumper=Dumper, sort_keys=False, **style)
    return text


def write_plan(path: str, plan: placer.Plan) -> None:
    """Write a plan, in the same way as `write_text`."""
    from placer.placement import plan_file

    with writing(path):
        plan_file.write_plan(plan, path)


def write_bytes(path: str, data: bytes) -> None:
    """Write all of ``data`` to ``path``, in the same way as `write_text`."""
    with writing(path):
        files.write_bytes(path, data)


def write_json(data: Mapping[str, Any]) -> None:
    """Write plain data to standard output, as plans are written."""
    from placer.placement.plan_file import json_text

    write_text("-", json_text(data))


def write_answer(
    format_name: str, data: Mapping[str, Any], text: Callable[[], str]
) -> None:
    """Write what was found to standard output: as JSON, or as a text for people."""
    if format_name == "json":
        write_json(data)
    else:
        write_line(text())


def write_found(format_name: str, found: Found, text: Callable[[], str]) -> None:
    """Write what was found, which is a table too: as CSV, or as `write_answer` does."""
    if format_name == "csv":
        write_text("-", found.to_csv())
    else:
        write_answer(format_name, found.to_dict(), text)


def write_rows(
    format_name: str, rows: Sequence[_Row], line: Callable[[_Row], str]
) -> None:
    """Write rows to standard output: as JSON, or a line each for people."""
    as_json = format_name == "json"
    write_line(json.dumps(rows, indent=2) if as_json else "\n".join(map(line, rows)))


def write_line(text: str) -> None:
    r"""Write ``text``, which people read, and a line end to standard output.

    A letter that it has no code for is written as on standard error: ``\xe8``.
    """
    coding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(coding, getattr(sys.stdout, "errors", None) or "strict")
    except UnicodeEncodeError:
        text = text.encode(coding, "backslashreplace").decode(coding)
    write_text("-", f"{text}\n")


def look_of_stdout() -> Look:
    """The width, colours and bars of a terminal; 80 plain columns elsewhere.

    ``NO_COLOR`` (no-color.org) and a dumb terminal are left without colours.
    """
    from placer.report.columns import PLAIN, Look

    if not is_terminal():
        return PLAIN
    width = shutil.get_terminal_size().columns
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return Look(
        width=min(max(width, _LEAST), _MOST),
        colour=not (_is_dumb() or os.environ.get("NO_COLOR")),
        bars=unicode and not _is_dumb(),
    )


def size_of_stderr() -> os.terminal_size:
    """Columns and lines of the terminal that standard error is, as they are now."""
    with suppress(OSError, ValueError):
        size = os.get_terminal_size(sys.stderr.fileno())
        if size.columns and size.lines:
            return size
    return shutil.get_terminal_size()


def has_bars() -> bool:
    """Whether standard error is a terminal that can take a line back."""
    return sys.stderr.isatty() and not _is_dumb()


def _is_dumb() -> bool:
    return os.environ.get("TERM", "dumb") == "dumb"
