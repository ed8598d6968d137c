"""What ``placer.yaml`` gives to commands in its folder, as their options have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.documents import Document, Value
from placer.documents.keys import (
    DURATION,
    TEXT,
    Kind,
    integer,
    key,
    list_of,
    map_of,
    number,
    special,
)
from placer.documents.records import read
from placer.documents.scalars import raw
from placer.job.roles import MAX_RANKS
from placer.topology.model import MAX_GPUS_OF_NODE, SMALLEST

# Of those that say the same in two ways one is given.
EITHER = (("hardware", "gpu"), ("tflops", "micro_batch_time"))


def _texts(value: Value, _: Any) -> tuple[str, ...]:
    """The text, or the texts of a list."""
    return tuple(value.texts()) if value.kind == "list" else (value.text(),)


_TEXTS = Kind(lambda: {"anyOf": [TEXT.schema(), list_of(TEXT).schema()]}, _texts)
_VARIABLES = special(
    lambda: {
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    },
)


@dataclass(frozen=True)
class Folder:
    """The keys of the file, named as the options that they stand for."""

    topology: tuple[str, ...] = key(
        _TEXTS,
        "what `-t` takes: a preset, a file, a text, `FORMAT:FILE`, or a list of the "
        "latter",
        (),
    )
    hardware: str = key(TEXT, "what `--hardware` takes, instead of `gpu`", "")
    gpu: str = key(
        TEXT,
        "what `--gpu` takes: the GPUs that the topology does not name, such as `h100`",
        "",
    )
    gpus_per_node: int = key(
        integer(1, MAX_GPUS_OF_NODE), "GPUs of nodes that no file counts", 0, absent=""
    )
    oversubscription: Mapping[str, float] = key(
        map_of(number(SMALLEST)),
        "tier: how many times the links into it are oversubscribed",
        dict,
    )
    labels: Mapping[str, str] = key(
        map_of(TEXT), "label of Kubernetes nodes: the tier that it gives", dict
    )
    hosts: tuple[str, ...] = key(
        _TEXTS, "what `--hosts` takes: a host list, `@FILE`, or a list of names", ()
    )
    job: tuple[str, ...] = key(
        _TEXTS, "what `-j` takes: a preset, a file, `FORMAT:FILE`, or a list", ()
    )
    gpus: int = key(
        integer(1, MAX_RANKS),
        "ranks of a job whose files do not say how many it has",
        0,
        absent="",
    )
    tflops: float = key(
        number(0.0, 1e6),
        "sustained rate of a GPU in TFLOP/s, for a job whose files do not say it",
        0.0,
        absent="",
    )
    micro_batch_time: float = key(
        DURATION,
        "measured time of a micro-batch on a stage: `120ms`, instead of `tflops`",
        0.0,
        absent="",
    )
    settings: Mapping[str, str] = key(
        _VARIABLES,
        "variables of scripts; `job.KEY` sets a key of the job",
        dict,
        called="set",
    )


def read_folder(document: Document) -> dict[str, Any]:
    """What a file gives, in the form that options have."""
    root = document.root
    variables = root.section("set").entries()
    found = vars(
        read(root, Folder, settings={name: raw(v.content) for name, v in variables})
    )
    for one, other in EITHER:
        if found[one] and found[other]:
            root.problem(f"contradicts {one}", other, "give one of them")
    document.finish()
    given = found | {"hosts": ",".join(found["hosts"])}
    return {name: value for name, value in given.items() if value}
