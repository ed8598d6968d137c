"""The one way for a command's data out: to a file, or to standard output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placer import files
from placer.cli.interrupt import interrupts


def write_text(path: str, text: str) -> None:
    """Write all of ``text`` to ``path``; ``-`` is standard output.

    Raises
    ------
    InputError
        If ``path`` is an input of the command.
    OutputError
        If it cannot be written.
    """
    with interrupts.writing(path):
        files.write_text(path, text)


def write_document(path: str, document: Mapping[str, Any]) -> None:
    """Write a document as YAML where the name of the file says so, else as JSON."""
    from placer.placement.plan_encode import json_text

    if not path.lower().endswith((".yaml", ".yml")):
        write_text(path, json_text(document))
        return
    write_text(path, yaml_text(document))


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


def write_bytes(path: str, data: bytes) -> None:
    """Write all of ``data`` to ``path``, in the same way as `write_text`."""
    with interrupts.writing(path):
        files.write_bytes(path, data)


def write_line(text: str) -> None:
    """Write ``text`` and a line end to standard output."""
    write_text("-", f"{text}\n")
