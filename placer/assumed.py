"""What no input says and an answer needs: assumed aloud, with an option for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from placer.documents import Section, Value, keys
from placer.documents.keys import TEXT, list_of, number, special
from placer.documents.records import entries, read

HARDWARE = "hardware"
LINKS = "links"
NVLINK = "nvlink"
GPUS_PER_NODE = "gpus_per_node"
OVERSUBSCRIPTION = "oversubscription"
MEMORY = "gpu.memory"
RATE = "compute.tflops_per_gpu"
FIXED = "compute.fixed_time"


_NUMBER = number(-1e18)


@dataclass(frozen=True)
class Assumption:
    """One value that is assumed.

    Its ``key`` is one of this module's names, or a key of the job format.
    """

    key: str = keys.key(TEXT, "what is assumed")
    value: float | str = keys.key(
        special(lambda: {"anyOf": [_NUMBER.schema(), TEXT.schema()]}),
        "a number or a text",
    )
    why: str = keys.key(TEXT, "why this value")
    option: str = keys.key(TEXT, "the option that says another")
    interval: tuple[float, float] | None = keys.key(
        list_of(_NUMBER), "between which values it lies most probably", None
    )


class Assumes(Protocol):
    """A machine or a job."""

    @property
    def assumed(self) -> tuple[Assumption, ...]:
        """What is assumed of it."""


def all_assumed(*inputs: Assumes) -> list[Assumption]:
    """What is assumed of machines and jobs, each once."""
    return [*dict.fromkeys(one for given in inputs for one in given.assumed)]


def assumed_entry(assumed: Iterable[Assumption]) -> dict[str, Any]:
    """The key ``assumed`` of a document or of JSON; nothing where nothing is."""
    listed = [entries(each) for each in assumed]
    return {"assumed": listed} if listed else {}


def decode_assumed(root: Section) -> tuple[Assumption, ...]:
    """The list under ``assumed``, checked; problems go to the section's document."""
    return tuple(_decode(value) for value in root.items("assumed"))


def of_document(listed: Iterable[Mapping[str, Any]]) -> tuple[Assumption, ...]:
    """The assumptions of a list that `decode_assumed` would take."""
    return tuple(
        Assumption(
            entry["key"],
            entry["value"],
            entry["why"],
            entry["option"],
            tuple(entry["interval"]) if "interval" in entry else None,
        )
        for entry in listed
    )


def _decode(value: Value) -> Assumption:
    section = value.section()
    given = section.get("value", required=True)
    found = read(section, Assumption, value="" if given is None else _scalar(given))
    if found.interval and len(found.interval) != 2:
        section.problem("expected two numbers", "interval")
    return found if found.interval else replace(found, interval=None)


def _scalar(value: Value) -> float | str:
    """A number as it is written, or a text."""
    if value.kind != "number":
        return value.text()
    number = value.number(minimum=-1e18)
    return int(number) if type(value.content) is int else number
