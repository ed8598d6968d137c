"""What starts a job today: the launcher, and where it stands in the job's script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placer.documents import Section

# Launchers that are read in scripts, by their names in `placer score --list`, and the
# order in which each numbers the hosts by itself.
_GIVEN, _BY_NAME = "hosts as given", "hosts by name"
STARTERS = {
    "torchrun-c10d": _BY_NAME,
    "torchrun-static": _GIVEN,
    "swift": _GIVEN,
    "accelerate": _GIVEN,
    "accelerate-c10d": _BY_NAME,
    "slurm": _BY_NAME,
    "openmpi": _GIVEN,
    "hydra": _GIVEN,
    "deepspeed": _GIVEN,
    "verl": "hosts by address, taken for that of names",
    "ray": "hosts as given, which Ray does not promise",
    "kubernetes": "hosts as given, though the scheduler chooses them",
}
# Those whose order no line of the script says.
BY_HAND = ("verl", "ray", "kubernetes")
SORTING = ("torchrun-c10d", "accelerate-c10d", "slurm", "verl")


@dataclass(frozen=True)
class Started:
    """The launcher in a job's script.

    Attributes
    ----------
    name : str
        One of `STARTERS`.
    source : str
        Path of the script.
    line : int
        Where the launcher is called.
    command : tuple of str
        The program that it starts, a file of Python or ``-m`` and a module, and its
        arguments, with ``${NAME}`` for what the environment says; empty where it is not
        known so far.
    environment : mapping of str to str
        Variables that the script exports, as far as they are known.
    image : str
        Of the container that it runs in; empty where none is named.
    """

    name: str
    source: str
    line: int
    command: tuple[str, ...] = field(default=(), compare=False)
    environment: Mapping[str, str] = field(default_factory=dict, compare=False)
    image: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.name} at {PurePath(self.source).name}:{self.line}"

    def to_document(self) -> dict[str, Any]:
        """The keys of ``launcher`` in the job format that it gives."""
        parts = {
            "command": list(self.command),
            "environment": dict(self.environment),
            "image": self.image,
        }
        known = {key: value for key, value in parts.items() if value}
        return {"name": self.name, "source": self.source, "line": self.line, **known}


KEYS = ("name", "source", "line", "command", "environment", "image")


def decode_started(section: Section) -> Started | None:
    """The launcher that the section ``launcher`` of a job names, if it does."""
    if not [key for key in KEYS if section.has(key)]:
        return None
    environment = section.section("environment").entries()
    return Started(
        section.choice("name", [*STARTERS]),
        section.text("source"),
        section.integer("line"),
        tuple(item.text() for item in section.items("command")),
        {name: value.text() for name, value in environment},
        section.text("image", ""),
    )
