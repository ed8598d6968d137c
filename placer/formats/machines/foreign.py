"""Outputs that look like a description of the machine and are none, refused by name."""

from __future__ import annotations

import re

from placer.base.errors import InputError, Problem

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


def refuse_foreign(text: str, source: str) -> None:
    """Refuse a text that is known to hold no description of a machine.

    Raises
    ------
    InputError
        If it is one.
    """
    for what, pattern, hint in _FOREIGN:
        if pattern.search(text):
            raise InputError([Problem(f"it is {what}", source, hint=hint)])
