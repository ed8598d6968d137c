"""``placer.yaml``: the machine, the job and the hosts that commands in a folder take.

Options come first. Hosts, hardware and what goes with it belong to the file's topology,
so ``-t`` leaves them out; ``-j`` leaves out what belongs to its job.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from placer.cli.options import teller
from placer.documents.files import is_file

NAME = "placer.yaml"

# What options say beside -t and -j.
MACHINE_OPTIONS = ("gpu", "hardware", "gpus_per_node", "oversubscription", "labels")
SOURCE_OPTIONS = ("gpus", "tflops", "micro_batch_time", "settings", "select")

# How the file calls what an option calls otherwise.
KEYS = {"settings": "set"}
_NEEDED = {"topology": "'-t' / '--topology'", "job": "'-j' / '--job'"}


def with_folder(options: dict[str, Any], why: str = "") -> dict[str, Any]:
    """Options of a command with what `NAME` gives; they name a machine and a job.

    ``options``: of a command with ``-t`` and ``-j``. ``why``: why these are needed,
    where they not always are.
    """
    found = from_folder(options)
    missing = [text for name, text in _NEEDED.items() if not (options | found)[name]]
    if missing:
        several, them = ("s", "them") if len(missing) > 1 else ("", "it")
        reason = f": {why}" if why else ""
        message = f"Missing option{several} {' and '.join(missing)}{reason}."
        raise click.UsageError(f"{message} A {NAME} here can give {them}.")
    if found:
        given = ", ".join(f"{key} {_shown(value)}" for key, value in found.items())
        teller(options)(f"{NAME}: {given}")
    return options | found


def from_folder(options: Mapping[str, Any]) -> dict[str, Any]:
    """What `NAME` gives to those of ``options`` that are missing, by their names."""
    from placer.documents import open_document
    from placer.formats.folder import EITHER, read_folder

    missing = []
    machine = (*MACHINE_OPTIONS, "hosts")
    for source, others in (("job", SOURCE_OPTIONS), ("topology", machine)):
        if not options.get(source):
            missing += [key for key in (source, *others) if not options.get(key)]
    for either in EITHER:  # an option leaves out both
        if any(map(options.get, either)):
            missing = [key for key in missing if key not in either]
    if not set(_NEEDED) & set(missing) or not is_file(NAME):
        return {}
    known = read_folder(open_document(NAME))
    return {key: known[key] for key in known if key in missing and key in options}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(
            f"{key}={one:g}" if isinstance(one, float) else f"{key}={one}"
            for key, one in value.items()
        )
    return " ".join(value) if isinstance(value, tuple) else str(value)
