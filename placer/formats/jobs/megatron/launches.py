"""The command of a script that trains, and the GPUs that it says."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from placer.base.errors import InputError, Problem
from placer.base.naming import named
from placer.documents.scalars import visible
from placer.formats.jobs.findings import GPUS, Asked, Findings, Place
from placer.formats.jobs.megatron.arguments import Argument, arguments_of, name_of
from placer.formats.jobs.shell import Command, Script, Text
from placer.formats.jobs.shell.questions import (
    ask,
    depends,
    no_launch,
    note_left_out,
    question,
    setting,
)
from placer.formats.jobs.shell.text import Either, known, opens
from placer.formats.jobs.starter import read_starter
from placer.topology.gpu_kinds import HostHint

_MARKERS = {
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "num_layers"),
    *("hidden_size", "num_attention_heads", "seq_length"),
    *("micro_batch_size", "global_batch_size"),
}
_PRINTS = ("echo", "printf", "cat", "tee")
_TRAINS = re.compile(r"(?:^|/)(?:pretrain|finetune|train|sft)[\w.-]*\.py$")
_PER_NODE = ("nproc_per_node", "num_gpus", "ntasks_per_node", "gpus_per_node")
_NODES = ("nnodes", "num_nodes", "nodes")
_GPUS_PER_NODE = ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE")
# What launchers take before the program.
LAUNCHER_FLAGS = frozenset(
    {*_PER_NODE, *_NODES, "ntasks", "node_rank", "master_addr", "master_port"}
)
_SHORT = {"-N": "nodes", "-n": "ntasks", "-np": "ntasks"}


@dataclass(frozen=True)
class Launch:
    """What starts a training program."""

    arguments: tuple[Argument, ...]  # in order, those of the launcher first
    launcher: tuple[Text, ...]  # the words before the first argument
    environment: dict[str, Text]  # variables set for the command alone
    anything: tuple[Text, ...] = ()  # words that may be any arguments
    causes: tuple[str, ...] = ()  # what decides whether it is started, and is not known
    words: tuple[Text, ...] = ()  # all of its words; none where no command starts it

    @property
    def place(self) -> Place:
        """Where it begins."""
        first = self.launcher or self.arguments
        return first[0].place if first else Place("")

    @property
    def program(self) -> str:
        """The file of the program, if it is called like one that trains."""
        words = [*self.launcher, *(v for a in self.arguments for v in a.values)]
        return next((w.text for w in words if _TRAINS.search(w.text)), "")

    @property
    def markers(self) -> int:
        """How many of the arguments are those of a Megatron job."""
        return len({name_of(a.flag) for a in self.arguments} & _MARKERS)


def launch_of(script: Script, asked: Asked) -> Launch | None:
    """The one command of a script that trains; None when there is none.

    Where no command does, the arguments that variables hold, or that stand in the file
    by themselves.
    """
    launches = [
        launch_of_command(command, script.either)
        for command in script.commands
        if command.words and command.words[0].text not in _PRINTS
    ]
    found = [one for one in launches if one.markers > 1 or _may_have_any(one)]
    if not found:
        return _bare(script)
    trains = [launch for launch in found if launch.program] or found
    return select(trains, asked, script.source)


def select(launches: Sequence[Launch], asked: Asked, source: str) -> Launch:
    """The launch that is selected by its number, or the only one."""
    count = len(launches)
    if asked.select:
        number = int(asked.select) if asked.select.isdecimal() else 0
        if 0 < number <= count:
            return launches[number - 1]
        message = f'there is no program "{visible(asked.select)}" of the {count}'
        raise InputError([Problem(message, source, key="select")])
    told = {
        tuple((a.flag, *(v.text for v in a.values)) for a in launch.arguments)
        for launch in launches
    }
    if len(told) > 1:
        causes = [cause for launch in launches for cause in launch.causes]
        if hint := setting(causes):
            raise InputError([Problem(depends(causes), *launches[1].place, hint=hint)])
        places = ", ".join(
            f"{number} at line {launch.place.line}"
            for number, launch in enumerate(launches[:9], start=1)
        )
        message = f"it starts {count} programs: {places}"
        hint = f"say which: {named('select', 'NUMBER')}"
        raise InputError([Problem(message, *launches[1].place, hint=hint)])
    return launches[0]


def started(
    found: Findings,
    script: Script,
    launches: Sequence[Launch],
    asked: Asked,
    missing: str,
    hint: str = "",
) -> Launch:
    """The launch that is selected; what starts it and what is left out is noted."""
    if not launches:
        raise no_launch(script, missing, hint)
    launch = select(launches, asked, script.source)
    note_left_out(found, script)
    read_starter(found, launch.words, script, launch.environment)
    return launch


def launch_of_command(command: Command, either: Either) -> Launch:
    """A command as the launch of a program."""
    given = arguments_of(command.words, either)
    return Launch(
        tuple(given.arguments),
        tuple(given.before),
        command.environment,
        tuple(given.anything),
        command.causes,
        tuple(command.words),
    )


def ask_for_anything(launch: Launch, found: Findings, script: Script) -> None:
    """Ask for words that may be any arguments.

    A variable of the environment that is not set is empty, and noted.
    """
    for word in launch.anything:
        unset = [
            part.name
            for part in opens(word.text)
            if part.is_unset and part.name not in script.variables
        ]
        if len(unset) == len(opens(word.text)) and not known(word.text):
            names = ", ".join(visible(name) for name in unset)
            found.notes.append(f"{names} is not set: it is taken to be empty")
        else:
            ask(found, "", "an argument", word)


def _may_have_any(launch: Launch) -> bool:
    unset = (all(o.is_unset for o in opens(word.text)) for word in launch.anything)
    return bool(launch.program) and not all(unset)


def _bare(script: Script) -> Launch | None:
    """Arguments in a file of nothing else, or in the variables of a script."""
    words = [
        word
        for command in script.commands
        if command.words[0].text.startswith("--")
        for word in command.words
    ]
    texts = [text for text in script.variables.values() if "--" in text.text]
    for text in texts:
        if not any(other is not text and text.text in other.text for other in texts):
            words += text.words()
    given = arguments_of(words, script.either)
    # No program stands before the arguments, and what stands there may be some.
    first = [word for word in given.before if word.is_open and not known(word.text)]
    anything = (*first, *given.anything)
    launch = Launch(tuple(given.arguments), tuple(given.before), {}, anything)
    return launch if launch.markers else None


def read_world(
    found: Findings, each: Text | None, nodes: Text | None, asked: Asked
) -> None:
    """Read the GPUs that ``nodes`` have, of ``each`` as many; without nodes, these."""
    # What nobody sets is not given.
    unsure = [
        text
        for text in (each, nodes)
        if text is not None and not all(part.is_unset for part in opens(text.text))
    ]
    if unsure and asked.gpus is None:
        message, hint = question("the number of GPUs", unsure[0])
        found.unsure.add(GPUS)
        found.ask(GPUS, message, f"{hint}, or {named('gpus', 'N')}", unsure[0].place)
    elif each is not None:
        world = _count(each) * (1 if nodes is None else _count(nodes))
        if world:
            found.read(GPUS, world, (nodes or each).place)


def host_of(launch: Launch, script: Script) -> HostHint:
    """What the launcher's options say of the GPUs of a host."""
    options = _options(launch)
    for name in _GPUS_PER_NODE:
        if name in script.variables:
            options.setdefault("gpus_per_node", script.variables[name])
    each = _first(options, ("gpus_per_node", "nproc_per_node", "num_gpus"))
    if each is None or not _count(each):
        return HostHint()
    return HostHint(_count(each), origin=str(each.place))


def _options(launch: Launch) -> dict[str, Text]:
    """Values of all options by their long names."""
    given = {name_of(a.flag): a for a in launch.arguments}
    options = {name: given[name].values[0] for name in given if given[name].values}
    for word, following in itertools.pairwise(launch.launcher):
        if word.text in _SHORT:
            options.setdefault(_SHORT[word.text], following)
    return options


def counts(launch: Launch, script: Script) -> tuple[Text | None, Text | None]:
    """What the launcher's options say: GPUs of a node, and nodes.

    The second is None where the first is of all.
    """
    options = _options(launch)
    torchrun = any(name in options for name in ("nproc_per_node", "num_gpus"))
    nodes = _first(options, _NODES)
    if not torchrun:
        tasks = options.get("ntasks") or script.variables.get("SLURM_NTASKS")
        if tasks is not None:
            return tasks, None
        for name in ("SLURM_NTASKS_PER_NODE", *_GPUS_PER_NODE):
            if name in script.variables:
                options.setdefault("ntasks_per_node", script.variables[name])
        if nodes is None:
            nodes = script.variables.get("SLURM_NNODES")
    each = _first(options, _PER_NODE)
    if nodes is None and not torchrun:
        return None, None
    return each, nodes


def _first(options: dict[str, Text], names: Sequence[str]) -> Text | None:
    return next((options[name] for name in names if name in options), None)


def _count(text: Text) -> int:
    """A number of nodes or GPUs; 0 where it is none, or a range."""
    return int(text.text) if re.fullmatch(r"[0-9]{1,7}", text.text) else 0
