"""What starts a job today: the launcher, and where it stands in the job's script."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.document import Section

# Launchers that are read in scripts, by their names in `placer predict --list`.
STARTERS = (
    "torchrun-c10d",
    "torchrun-static",
    "slurm",
    "openmpi",
    "hydra",
    "deepspeed",
)


@dataclass(frozen=True)
class Started:
    """The launcher in a job's script.

    Attributes
    ----------
    name : str
        As `placer predict` calls it.
    source : str
        Path of the script.
    line : int
        Where the launcher is called.
    """

    name: str
    source: str
    line: int

    def __str__(self) -> str:
        return f"{self.name} at {PurePath(self.source).name}:{self.line}"


def decode_started(section: Section) -> Started | None:
    """The launcher that the section ``launcher`` of a job names, if it does."""
    given = {key for key in ("name", "source", "line") if section.has(key)}
    if not given:
        return None
    return Started(
        section.choice("name", STARTERS),
        section.text("source"),
        section.integer("line"),
    )
