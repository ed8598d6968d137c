"""Sources of a machine as users write them, and what they say."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from placer.base.errors import InputError, Problem, refuse
from placer.documents.presets import is_preset
from placer.documents.recognise import (
    Source,
    Text,
    open_text,
    perhaps_of_another,
    refuse_other,
)
from placer.formats.jobs.registry import FORMATS as JOBS
from placer.formats.machines.findings import Findings
from placer.formats.machines.joined import settled
from placer.formats.machines.node_labels import LabelRules
from placer.formats.machines.registry import FORMATS, read
from placer.topology import read as topology_files
from placer.topology.model import Topology
from placer.topology.synthetic import is_synthetic

_SLURM = "save what scontrol show topology prints, or scontrol show topoconf"
_KUBECTL = "kubectl get nodes -o json prints what is read"
# What each is, how it shows, and what to give instead.
_FOREIGN = (
    (
        "JSON of a Slurm command, which knows no switches and no blocks",
        re.compile(r'"data_parser"\s*:|"data_parser/v[0-9]'),
        _SLURM,
    ),
    (
        "the table of azslurm, which cuts long lists of nodes",
        re.compile(r"\A\s*Block Name[ ]*\|[ ]*Size"),
        "give the topology.conf that azslurm topology writes, or its JSON",
    ),
    (
        "nodes of Kubernetes as YAML",
        re.compile(r"^[ -]{0,4}kind:[ ]*Node(?:List)?[ ]*$", re.MULTILINE),
        _KUBECTL,
    ),
    (
        "the table of kubectl get nodes",
        re.compile(r"\A\s*NAME[ ]+STATUS[ ]+ROLES"),
        _KUBECTL,
    ),
)


def open_source(source: Source) -> Topology | Text:
    """A topology as such, or a text with the format it is in."""
    given = os.fspath(source)
    if is_preset("topologies", given) or is_synthetic(given):
        return topology_files.read_topology(source)
    found = open_text(source, FORMATS)
    if found is None:
        return topology_files.read_topology(source)
    if not found.shows:
        refuse_foreign(found.text, found.shown)
    return found if found.format else _own(found.text, found.shown, given)


def _own(text: str, shown: str, given: str) -> Topology:
    """A text that shows no reader's format, as a topology file."""
    refuse_other(text, shown, JOBS, "job")
    if text.strip() and ":" not in text:  # not even a mapping
        message = "its format does not show from its content"
        hint = (
            f"say which: hosts:{given} for a list of hosts, names:{given} for lines of "
            "an id and its host; see placer topology formats"
        )
        raise InputError(message, shown, hint=hint)
    with perhaps_of_another(text, "placer topology formats"):
        return topology_files.parse_topology(text, shown)


def read_all(
    texts: Sequence[Text],
    rules: LabelRules | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Findings]:
    """Findings of every text.

    ``rules``: what node labels mean; the orders that texts give are added. ``tell``:
    called with every remark of the readers, also where an error follows.
    """
    rules = rules or LabelRules()
    found: dict[int, Findings] = {}
    problems: list[Problem] = []
    # Those that take the labels' meaning come after those that may give it.
    later = [FORMATS[text.format].takes_labels for text in texts]
    for number in sorted(range(len(texts)), key=later.__getitem__):
        text = texts[number]
        try:
            found[number] = read(text.format, text.text, text.shown, rules)
        except InputError as error:
            problems += error.problems
            continue
        orders = (*rules.orders, *found[number].label_orders)
        rules = replace(rules, orders=orders)
    if rules.tiers and not any(later):
        hint = "a list of nodes of Kubernetes has labels: kubernetes:FILE"
        problems.append(Problem("no source has labels", key="label", hint=hint))
    read_in_order = [found[number] for number in sorted(found)]
    try:
        refuse(problems)
        complete = settled(read_in_order)
    except InputError:
        _tell(read_in_order, tell)
        raise
    _tell(complete, tell)
    return complete


def _tell(findings: Sequence[Findings], tell: Callable[[str], None]) -> None:
    """Every remark once: what files say that were joined stands in several findings."""
    remarks = (remark for found in findings for remark in found.remarks())
    for remark in dict.fromkeys(remarks):
        tell(remark)


def refuse_foreign(text: str, source: str) -> None:
    """Refuse a text that is known to hold no description of a machine."""
    for what, pattern, hint in _FOREIGN:
        if pattern.search(text):
            raise InputError(f"it is {what}", source, hint=hint)
