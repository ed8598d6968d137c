"""Sources as users write them: which format each is in, and what it says."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from placer import files
from placer.errors import InputError, Problem, refuse
from placer.presets import is_preset
from placer.readers.foreign import refuse_foreign
from placer.readers.joined import settled
from placer.readers.node_labels import LabelRules
from placer.readers.registry import FORMATS, read, recognise
from placer.topology import read as topology_files
from placer.topology.synthetic import is_synthetic

if TYPE_CHECKING:
    from placer.readers.findings import Findings
    from placer.topology.model import Topology

Source = str | os.PathLike[str]

_OWN_FORMAT = re.compile(r"""\bformat["']?\s*:\s*["']?placer/""")
_OTHERS = "of another program? placer topo formats lists what is read"
_PREFIXED = re.compile(r"([A-Za-z][A-Za-z0-9-]*):(.+)", re.DOTALL)


@dataclass(frozen=True)
class Text:
    """A source in one of the readers' formats.

    Attributes
    ----------
    format : str
        Its name in `placer.readers.registry.FORMATS`.
    text : str
    shown : str
        How messages call the source.
    """

    format: str
    text: str
    shown: str


def open_source(source: Source) -> Topology | Text:
    """A topology as such, or a text with the format it is in.

    Raises
    ------
    InputError
        If there is no such file, preset or format, or the topology is not valid.
    """
    given = os.fspath(source)
    if is_preset("topologies", given) or is_synthetic(given):
        return topology_files.read_topology(source)
    prefixed = _PREFIXED.fullmatch(given)
    if prefixed and prefixed[1] in FORMATS:
        return _prefixed(prefixed[1], prefixed[2])
    if not (given == "-" or files.is_file(given)):
        if prefixed and not files.is_file(given):
            raise _unknown_format(prefixed[1])
        return topology_files.read_topology(source)
    text, shown = files.read_text(given), files.shown_name(given)
    formats = [] if _OWN_FORMAT.search(text, 0, 65536) else recognise(text)
    if len(formats) > 1:
        hint = f"say which: {formats[0]}:{given}"
        message = f"it looks like each of {', '.join(formats)}"
        raise InputError([Problem(message, shown, hint=hint)])
    if formats:
        return Text(formats[0], text, shown)
    refuse_foreign(text, shown)
    if text.strip() and ":" not in text:  # not even a mapping
        message = "its format does not show from its content"
        hint = (
            f"say which: hosts:{given} for a list of hosts, names:{given} for lines of "
            "an id and its host; see placer topo formats"
        )
        raise InputError([Problem(message, shown, hint=hint)])
    return _own(text, shown)


def _own(text: str, shown: str) -> Topology:
    """A text that shows no reader's format, as a topology file."""
    try:
        return topology_files.parse_topology(text, shown)
    except InputError as error:
        first, *others = error.problems
        if '"format" is missing' not in first.message:
            raise
        raise InputError([replace(first, hint=_OTHERS), *others]) from None


def _prefixed(name: str, path: str) -> Text:
    text, shown = files.read_text(path), files.shown_name(path)
    formats = recognise(text)
    if formats and name not in formats and FORMATS[name].pattern:
        message = f"it is not of the format {name}"
        hint = f"it looks like {formats[0]}:{path}"
        raise InputError([Problem(message, shown, hint=hint)])
    if not formats:
        refuse_foreign(text, shown)
    return Text(name, text, shown)


def _unknown_format(name: str) -> InputError:
    near = get_close_matches(name, FORMATS, n=1)
    meant = f'did you mean "{near[0]}"? ' if near else ""
    hint = f"{meant}formats: {', '.join(FORMATS)}"
    return InputError([Problem(f'there is no file and no format "{name}"', hint=hint)])


def read_all(texts: Sequence[Text], rules: LabelRules | None = None) -> list[Findings]:
    """Findings of every text.

    Parameters
    ----------
    texts : sequence of Text
    rules : LabelRules, optional
        What node labels mean; the orders that texts give are added.

    Raises
    ------
    InputError
        If anything is wrong with a text, the problems of all of them at once; or if
        they do not fit together.
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
    refuse(problems)
    return settled([found[number] for number in range(len(texts))])
