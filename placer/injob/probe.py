"""What this node says of itself: one line, the same keys everywhere."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from placer.injob.gpus import find_gpus
from placer.injob.nics import find_nics, rails
from placer.launch.process import host_name

FORMAT = "placer/probe"
VERSION = 1
# Where manifests usually mount the labels of the downward API.
_LABELS = "/etc/podinfo/labels"
_LABEL = re.compile(r'([^\s=]{1,317})="((?:[^"\\]|\\.)*)"')


def probe(
    cloud: str | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What the node is, as ``placer probe`` prints it.

    Parameters
    ----------
    cloud : str, optional
        Whose metadata service to ask, of `placer.injob.cloud.CLOUDS`.
    environ : mapping of str to str, optional
        Variables of Slurm and Kubernetes; by default those of this process.
    """
    env = os.environ if environ is None else environ
    gpus, nics = find_gpus(), find_nics()
    problems = [*gpus.problems]
    labels = _labels(env, problems)
    facts: dict[str, str] = {}
    if cloud:
        from placer.injob.cloud import cloud_facts

        facts, wrong = cloud_facts(cloud)
        problems += wrong
    return {
        "format": FORMAT,
        "version": VERSION,
        "host": node_name(env),
        "gpus": len(gpus.listed),
        "gpu": gpus.name,
        "memory": gpus.memory,
        "nvlink_domain": gpus.domain,
        "topology_addr": env.get("SLURM_TOPOLOGY_ADDR", ""),
        "topology_pattern": env.get("SLURM_TOPOLOGY_ADDR_PATTERN", ""),
        "labels": labels,
        "cloud": facts,
        "nics": len(nics),
        "rails": rails(nics, [gpu.bus for gpu in gpus.listed]),
        "problems": problems,
    }


def probe_line(found: Mapping[str, Any]) -> str:
    """A probe as one line of JSON."""
    return json.dumps(found)


def node_name(environ: Mapping[str, str] | None = None) -> str:
    """The node's name; in a pod ``NODE_NAME``, where the downward API gives it."""
    env = os.environ if environ is None else environ
    named = "PLACER_HOST" in env or "SLURMD_NODENAME" in env
    return host_name(env) if named else env.get("NODE_NAME") or host_name(env)


def _labels(environ: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    """The labels that the downward API wrote, lines of ``key="value"``."""
    given = environ.get("PLACER_LABELS")
    try:
        text = Path(given or _LABELS).read_text("utf-8", "replace")
    except OSError as error:
        if given:
            problems.append(f"labels {given}: {error.strerror}")
        return {}
    rows = (_LABEL.fullmatch(line.strip()) for line in text.splitlines())
    return {row[1]: json.loads(f'"{row[2]}"') for row in rows if row}
