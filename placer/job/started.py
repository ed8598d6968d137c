"""What starts a job today: the launcher, and where it stands in the job's script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, ClassVar

from placer.documents import Section
from placer.documents.keys import (
    TEXT,
    Key,
    integer,
    key,
    keys_of,
    list_of,
    map_of,
    one_of,
)
from placer.documents.records import read

LAUNCHER_RANKS = ("node-contiguous", "free")
RANKS_HINT = "write launcher: {ranks: free}"
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

    ``command`` has ``${NAME}`` for what the environment says; where something is not
    known so far it is empty.
    """

    ranks = Key(
        one_of(LAUNCHER_RANKS),
        "`node-contiguous`: a node holds consecutive ranks; or `free`",
        "node-contiguous",
    )
    name: str = key(
        one_of(tuple(STARTERS)),
        "the launcher in the job's script, as `placer score --list` calls it; jobs "
        "read from a script have it",
        absent="",
    )
    source: str = key(TEXT, "path of the script", absent="")
    line: int = key(
        integer(),
        "line of the script on which the launcher is called: `emit PLAN patch` "
        "changes it",
        absent="",
    )
    command: tuple[str, ...] = key(
        list_of(TEXT),
        "the program that the launcher starts and its arguments, for pods: a file "
        "of Python, or `-m` and a module, first; `${NAME}` is a variable of the "
        "environment",
        (),
        unsaid=True,
        compare=False,
    )
    environment: Mapping[str, str] = key(
        map_of(TEXT),
        "variables that the script exports: their values",
        dict,
        unsaid=True,
        compare=False,
    )
    image: str = key(
        TEXT,
        "image of the container that the script runs in",
        "",
        unsaid=True,
        compare=False,
    )

    together: ClassVar[dict[str, Any]] = {
        "dependentRequired": {
            "name": ["source", "line"],
            "source": ["name", "line"],
            "line": ["name", "source"],
            "command": ["name"],
            "environment": ["name"],
            "image": ["name"],
        }
    }

    def __str__(self) -> str:
        return f"{self.name} at {PurePath(self.source).name}:{self.line}"


KEYS = tuple(each.called for each in keys_of(Started) if each.attribute)


def decode_started(section: Section) -> Started | None:
    """The launcher that the section ``launcher`` of a job names, if it does."""
    if not [name for name in KEYS if section.has(name)]:
        return None
    for needed in ("name", "source", "line"):
        section.get(needed, required=True)
    return read(section, Started)
