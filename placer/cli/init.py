"""``placer init``: write ``placer.yaml``, so that commands here need no options.

What no file says is asked for on a terminal, with what would be assumed as the answer
that an empty line gives. Elsewhere nothing is asked.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import placer
from placer.base.errors import InputError
from placer.cli import shared
from placer.cli.folder import KEYS, MACHINE_OPTIONS, NAME, SOURCE_OPTIONS
from placer.cli.grouped import command
from placer.cli.inputs import read_given_job, read_machine
from placer.cli.options import flag
from placer.cli.output import write_line, write_text
from placer.documents.files import is_file

if TYPE_CHECKING:
    from placer.assumed import Assumption
    from placer.documents.recognise import Format

# Files of a folder that are looked at, and their size, where no option names any.
_MOST_FILES, _MOST_BYTES = 200, 2_000_000
# Formats that say little by themselves: others are meant where both are there.
_OWN = {"machine": "topology", "job": "job"}
_OWN_FORMAT = re.compile(r"""\bformat["']?\s*:\s*["']?placer/([a-z]+)""")
_WEAK = ("hosts", "names", "bandwidth")


@command("placer init -t topology.conf -j pretrain.sh --gpu h100")
@shared.topology("Default: the one file here that describes a machine.")
@shared.job("Default: the one file here that starts a job.")
@shared.sources
@shared.hosts
@flag("--force", f"Overwrite an existing {NAME}.")
@shared.quiet("Print nothing and ask nothing.")
def init(**options: Any) -> None:
    """Write placer.yaml, so that commands need no -t and -j.

    Commands in this folder then take machine and job from it. On a terminal it asks for
    the GPUs, the uplinks and the rate that no file says.
    """
    if is_file(NAME) and not options["force"]:
        hint = "--force writes over it"
        raise InputError("it is there already", NAME, hint=hint)
    options["topology"] = options["topology"] or _found("machine", "-t")
    options["job"] = options["job"] or _found("job", "-j")
    if "-" in (*options["topology"], *options["job"]):
        raise click.UsageError(f"{NAME} needs files that stay: - names none.")
    asks = sys.stdin.isatty() and sys.stderr.isatty() and not options["quiet"]
    machine, job, assumed = _read(options)
    if asks:
        machine, job, assumed = _asked(options, assumed)
    write_text(NAME, _text(options, assumed))
    if not options["quiet"]:
        write_line("\n".join(_told(machine, job, assumed)))


def _found(what: str, option: str) -> tuple[str]:
    """The one file of this folder that shows a format of machines, or of jobs."""
    from placer.formats.jobs.registry import FORMATS as JOBS
    from placer.formats.machines.registry import FORMATS as MACHINES

    formats: Mapping[str, Format] = MACHINES if what == "machine" else JOBS
    found = [*_recognised(formats, _OWN[what])]
    if len(found) == 1:
        return (found[0],)
    if not found:
        message = f"no file here describes a {what}"
        raise InputError(message, key=option, hint=f"{option} names one")
    message = f"several files here describe a {what}: {', '.join(found[:5])}"
    raise InputError(message, key=option, hint=f"say which: {option} FILE")


def _recognised(formats: Mapping[str, Format], own: str) -> Iterator[str]:
    """Names of files that show one of the formats, or are of placer's own."""
    from placer.documents.recognise import is_own, recognise

    rows = [row for name, row in formats.items() if name not in _WEAK]
    for path in sorted(Path().iterdir())[:_MOST_FILES]:
        if path.name == NAME or not path.is_file() or path.stat().st_size > _MOST_BYTES:
            continue
        text = path.read_bytes().decode(errors="replace")
        if is_own(text):
            if (first := _OWN_FORMAT.search(text)) and first[1] == own:
                yield path.name
        elif recognise(text, rows):
            yield path.name


def _read(
    options: dict[str, Any],
) -> tuple[placer.Topology, placer.Job, list[Assumption]]:
    """The machine, the job and what is assumed of them."""
    from placer.assumed import all_assumed

    machine = read_machine(options)
    job = read_given_job(options, machine, options["hosts"])
    return machine, job, all_assumed(machine, job)


def _asked(
    options: dict[str, Any], assumed: list[Assumption]
) -> tuple[placer.Topology, placer.Job, list[Assumption]]:
    """Machine, job and what is assumed by answers of the user, made options.

    Each answer may change what is assumed after it: the GPU says the rate.
    """
    from placer.assumed import HARDWARE, OVERSUBSCRIPTION, RATE

    uplinks = "How many times are links into the {tier} tier oversubscribed"
    for key, name, text, parse in (
        (HARDWARE, "gpu", "GPUs of the hosts", _known_gpu),
        (OVERSUBSCRIPTION, "oversubscription", uplinks, _positive),
        (RATE, "tflops", "TFLOP/s that a GPU sustains", _positive),
    ):
        open_ = next((each for each in assumed if each.key == key), None)
        if open_ is not None:
            tier = _tier(open_)
            answer = _prompt(text.format(tier=tier), open_, parse)
            if key == OVERSUBSCRIPTION:
                answer = {tier: answer} if answer else {}
            options[name] = answer
            *_, assumed = _read(options | {"quiet": True})
    return _read(options | {"quiet": True})


def _tier(assumed: Assumption) -> str:
    """The tier whose links are assumed, by the option that says otherwise."""
    return assumed.option.rpartition(" ")[2].partition("=")[0]


def _known_gpu(text: str) -> str:
    from placer.topology.gpu_kinds import hosts_of_gpu

    try:
        hosts_of_gpu(text)
    except InputError as error:
        raise click.BadParameter(error.problems[0].hint) from None
    return text


def _positive(text: str) -> float:
    try:
        number = float(text.removesuffix(":1"))
    except ValueError:
        number = 0.0
    if not 0 < number < 1e6:
        raise click.BadParameter(f"{text!r} is not a number above 0")
    return number


def _prompt(text: str, assumed: Assumption, parse: Callable[[str], Any]) -> Any:
    """The answer of the user; None for an empty line, which leaves it assumed."""
    value = assumed.value
    shown = value if isinstance(value, str) else f"{value:g}"
    asked = f"{text} [Enter: {shown} is assumed]"
    return click.prompt(
        asked,
        default="",
        show_default=False,
        err=True,
        value_proc=lambda answer: parse(answer) if answer.strip() else None,
    )


def _text(options: dict[str, Any], assumed: list[Assumption]) -> str:
    """The file: what was given, and what is assumed as comments."""
    given = {KEYS.get(key, key): options[key] for key in _ORDER if options.get(key)}
    for key in ("topology", "job"):
        listed = [*given[key]]
        given[key] = listed[0] if len(listed) == 1 else listed
    said = [f"{key}: {json.dumps(value)}" for key, value in given.items()]
    open_ = [line for each in assumed if (line := _comment(each))]
    return "\n".join([_HEAD, *said, *([_OPEN] if open_ else []), *open_]) + "\n"


_HEAD = "# Commands in this folder read these; -t and -j are not needed."
_OPEN = "# No file says these, so placer assumes them. Say them here instead:"
# --select, the last of SOURCE_OPTIONS, is no key of the file.
_ORDER = (
    *("topology", *MACHINE_OPTIONS, "hosts"),
    *("job", *SOURCE_OPTIONS[:-1]),
)


def _comment(assumed: Assumption) -> str:
    """A key of the file that says what is assumed; empty where there is none."""
    from placer.assumed import GPUS_PER_NODE, HARDWARE, OVERSUBSCRIPTION, RATE

    value = assumed.value
    said = {
        HARDWARE: f"# gpu: {value}",
        GPUS_PER_NODE: f"# gpus_per_node: {value}",
        RATE: f"# tflops: {value}",
        OVERSUBSCRIPTION: f"# oversubscription: {{{_tier(assumed)}: {value}}}",
    }
    return said.get(assumed.key, "")


def _told(
    machine: placer.Topology, job: placer.Job, assumed: list[Assumption]
) -> Iterator[str]:
    """What was read, for people."""
    from placer.documents.records import entries
    from placer.report.assumed_text import assumed_lines
    from placer.report.machine_text import parts, title

    yield f"machine: {machine.name}, {parts(machine)}"
    yield f"job: {job.name}, {title(job)}"
    yield from assumed_lines([*map(entries, assumed)])
