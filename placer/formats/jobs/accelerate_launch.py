"""``accelerate launch`` in a script: its configuration, and options that replace it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.documents import parse_document
from placer.formats.jobs.megatron.arguments import arguments_of, name_of
from placer.formats.jobs.megatron.launches import launch_of_command, select
from placer.formats.jobs.settings import Setting, Settings, plain_value, settings_of
from placer.formats.jobs.shell import read_script
from placer.formats.jobs.shell.questions import (
    end,
    missing_files,
    note_left_out,
    unknown_value,
)
from placer.formats.jobs.starter import is_program, read_starter, starter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placer.formats.jobs.findings import Asked, Findings
    from placer.formats.jobs.megatron.launches import Launch
    from placer.formats.jobs.shell import Script

# Sections of the configuration file, by how options that set their keys begin
# (accelerate, ``commands/launch.py``).
_SECTIONS = {
    "fsdp_": "fsdp_config.",
    "parallelism_config_": "parallelism_config.",
    "megatron_lm_": "megatron_lm_config.",
    "zero": "deepspeed_config.",
    "deepspeed_": "deepspeed_config.",
    "gradient_": "deepspeed_config.",
}
_KINDS = {"use_fsdp": "FSDP", "use_deepspeed": "DEEPSPEED", "multi_gpu": "MULTI_GPU"}


def settings_of_script(
    text: str, source: str, found: Findings, asked: Asked
) -> Settings:
    """What the one ``accelerate launch`` of a script says.

    Raises
    ------
    InputError
        If the script cannot be followed, or starts none or several; or its
        configuration file is not there.
    """
    script = read_script(text, source, asked)
    launches = [
        launch_of_command(command, script.either)
        for command in script.commands
        if _is_launch(starter(command.words, script.variables))
    ]
    if not launches:
        nothing = [Problem("it has no accelerate launch", source)]
        raise InputError([*missing_files(script), *(end(script) or nothing)])
    launch = select(launches, asked, source)
    note_left_out(found, script)
    read_starter(found, launch.words, script, launch.environment)
    given = dict(_given(launch, script))
    file = given.pop("config_file", None)
    if file is None:
        return Settings(found, given, asked)
    included = asked.include(source, str(file.value))
    if included is None:
        message = f"{file.value} is not beside it"
        hint = named("job", f"accelerate:{file.value}")
        raise InputError([Problem(message, *file.place, "--config_file", hint)])
    values = settings_of(parse_document(*included, aliases=True), found, asked).values
    return Settings(found, {**values, **given}, asked)


def _is_launch(called: tuple[str, object] | None) -> bool:
    return called is not None and called[0].startswith("accelerate")


def _given(launch: Launch, script: Script) -> Iterator[tuple[str, Setting]]:
    """The options before the program, as keys of the configuration file."""
    own = itertools.takewhile(lambda word: not is_program(word.text), launch.words)
    for argument in arguments_of(tuple(own), script.either).arguments:
        name = name_of(argument.flag)
        if name in _KINDS:
            yield "distributed_type", Setting(_KINDS[name], argument.place)
            continue
        starts = (s for start, s in _SECTIONS.items() if name.startswith(start))
        value = argument.values[0] if argument.values else None
        if value is None:
            found = Setting(True, argument.place)
        elif value.is_open:
            found = Setting(unknown_value(value), value.place)
        else:
            found = Setting(plain_value(value.text), value.place)
        yield next(starts, "") + name, found
