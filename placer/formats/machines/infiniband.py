"""The printed answer of ``ibnetdiscover``: switches, adapters and the links between.

Blocks of ``Switch``, ``Ca`` and ``Rt``; every link stands at both of its ends
(linux-rdma/rdma-core, ``infiniband-diags/ibnetdiscover.c``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from placer.base.errors import MOST_PROBLEMS, Problem, refuse

_ID = r'"([SHR]-[0-9A-Fa-f]{1,16})"'
_BLOCK = re.compile(rf'(?:Switch|Ca|Rt)\s+[0-9]+\s+{_ID}\s*(?:#\s*"([^"]*)".*)?')
_PORT = re.compile(
    rf"\[([0-9]{{1,4}})\](?:\[ext [0-9]+\])?(?:\([0-9A-Fa-f]+\))?\s+{_ID}"
    rf"\[([0-9]{{1,4}})\](?:\(([0-9A-Fa-f]+)\))?(?:\[ext [0-9]+\])?\s*(?:#(.*))?"
)
_RATE = re.compile(r"([0-9]{1,2})x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\s*")
_OTHER = re.compile(r"#.*|\w+=.*|\s*")

# Gb/s a lane (InfiniBand Trade Association, roadmap).
_LANE = {
    "SDR": 2.0,
    "DDR": 4.0,
    "QDR": 8.0,
    "FDR10": 10.0,
    "FDR": 13.6,
    "EDR": 25.0,
    "HDR": 50.0,
    "NDR": 100.0,
    "XDR": 200.0,
}


@dataclass(slots=True)
class Link:
    """One end of a link.

    Attributes
    ----------
    node, port : str, int
    other, other_port : str, int
        The other end.
    rate : float, Gb/s
        0 where it is not printed.
    line : int
    """

    node: str
    port: int
    other: str
    other_port: int
    rate: float
    line: int


@dataclass
class Fabric:
    """Everything that was found.

    Attributes
    ----------
    descriptions : dict of str to str
        Description of every switch, adapter and router by its id (``S-``, ``H-``).
    links : dict of (str, int) to Link
        By node and port; each link twice.
    ignored : list of Problem
    """

    descriptions: dict[str, str] = field(default_factory=dict)
    links: dict[tuple[str, int], Link] = field(default_factory=dict)
    ignored: list[Problem] = field(default_factory=list)


def read_fabric(text: str, source: str) -> Fabric:
    """The fabric.

    Raises
    ------
    InputError
        If a block is missing, comes twice, or a link is shown at one end only.
    """
    fabric = Fabric()
    problems: list[Problem] = []
    current = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("[") and (match := _PORT.match(line)):
            if message := _add_link(fabric, current, match, number):
                problems.append(Problem(message, source, number, 1))
        elif match := _BLOCK.match(line):
            current = match[1]
            if current in fabric.descriptions:
                message = f"{current} comes twice: two answers in one file?"
                problems.append(Problem(message, source, number, 1))
            fabric.descriptions[current] = match[2] or ""
        elif not _OTHER.fullmatch(line):
            fabric.ignored.append(Problem("not a line of it", source, number, 1))
    refuse(problems)
    _check_ends(fabric, source)
    return fabric


def _add_link(fabric: Fabric, current: str, match: re.Match[str], number: int) -> str:
    """Add the link of a line; why it cannot be, empty when it can."""
    port, other, other_port, comment = int(match[1]), match[2], int(match[3]), match[5]
    if not current:
        return "a port before the first block: cut?"
    if (current, port) in fabric.links:
        return f"port {port} of {current} comes twice"
    # The rate is the last word, where it is printed at all.
    rate = _rate((comment or "").rpartition(" ")[2])
    fabric.links[current, port] = Link(current, port, other, other_port, rate, number)
    return ""


@lru_cache(maxsize=256)
def _rate(word: str) -> float:
    """Gb/s of ``4xNDR``: the width times a lane's rate; 0 for any other word."""
    match = _RATE.fullmatch(word)
    return int(match[1]) * _LANE[match[2]] if match else 0.0


def _check_ends(fabric: Fabric, source: str) -> None:
    """Refuse a file that was cut: every link has two ends."""
    problems = []
    hint = "is the file cut, or were some lines filtered?"
    for link in fabric.links.values():
        back = fabric.links.get((link.other, link.other_port))
        if back and back.other == link.node and back.other_port == link.port:
            continue
        message = (
            f"the link from port {link.port} of {link.node} to port "
            f"{link.other_port} of {link.other} is shown at one end only"
        )
        if link.other not in fabric.descriptions:
            message = f"{link.other} is linked to {link.node}, but has no block"
        problems.append(Problem(message, source, link.line, 1, hint=hint))
        if len(problems) > 4 * MOST_PROBLEMS:
            break
    refuse(problems)
