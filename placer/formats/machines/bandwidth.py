"""Measured bandwidths between hosts or GPUs, a CSV matrix, clustered into tiers.

The first line names the columns, the first cell of each other line its row; hosts, or
GPUs as ``host:0``. The corner holds the unit: ``GB/s per GPU`` when a cell is what one
GPU sends to another host (or GPU), one way; any other text when it is not known, and
then the figures only tell the tiers apart.
"""

from __future__ import annotations

import csv
import re
import warnings
from dataclasses import dataclass

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.errors import InputError, Problem, refuse
from placer.base.naming import named
from placer.base.units import parse_bandwidth
from placer.formats.machines.clusters import (
    MAX_ASYMMETRY,
    Clusters,
    clusters_of,
    median,
)
from placer.formats.machines.findings import Findings, Level, NodeFacts, some

MAX_NAMES = 2048

_GPU = re.compile(r"(.+?):(?:GPU)?[0-9]{1,4}", re.IGNORECASE)
_UNIT = re.compile(r"\s*([A-Za-z]+/s|[A-Za-z]+bps)\s+per\s+GPU\s*", re.IGNORECASE)
_EMPTY = {"", "-", "x", "n/a", "nan"}


def read(text: str, source: str) -> Findings:
    """The tiers that gaps between bandwidths show, and what was measured on each."""
    matrix = _parse(text, source)
    problems = _asymmetries(matrix, source)
    refuse(problems)
    speeds, missing = _both_ways(matrix.cells)
    hosts, of_name, inside = _hosts(matrix.names)
    most = int(np.bincount(of_name).max())
    if len(hosts) * most > 2 * MAX_NAMES:
        message = f"a host has {most} GPUs, most of the {len(hosts)} have far fewer"
        raise InputError(message, source)
    apart = _hosts_of_groups(speeds, of_name)
    if 2 * len(apart) > len(hosts):
        host, sizes = next(iter(apart.items()))
        message = (
            f'the GPUs of "{hosts[host]}" are {len(sizes)} groups by bandwidth, of '
            f"{', '.join(map(str, sizes))} GPUs; hosts like it: {len(apart)}"
        )
        slowest = named("hardware", "FILE")
        hint = f"give rows of hosts, and the slowest of a node by {slowest}"
        raise InputError(message, source, hint=hint)
    between, within = _by_host(speeds, of_name, len(hosts))
    found = clusters_of(between)
    if found.chained >= 0:
        message = (
            f'most pairs of the group of "{hosts[found.chained]}" are slower than its '
            "links: a chain, no tier"
        )
        raise InputError(message, source)
    findings = Findings(source)
    if inside:
        gpus = np.bincount(of_name).tolist()
        findings.node_bandwidth = _times(within, matrix.factor)
    else:
        gpus = [None] * len(hosts)
    if apart:
        slow = f"{len(apart)}: {some([hosts[host] for host in apart])}"
        findings.notes.append(f"hosts with groups of slower GPUs, a bad link?: {slow}")
    _add_levels(findings, hosts, gpus, found, matrix.factor)
    _add_notes(findings, hosts, found, within, matrix, missing)
    return findings


@dataclass
class _Matrix:
    """The cells; NaN where nothing was measured. ``factor`` makes them B/s."""

    names: list[str]
    cells: FloatArray
    unit: str
    factor: float | None


def _parse(text: str, source: str) -> _Matrix:
    """The matrix, rows in the order of the columns."""
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    lines = [line for line in text.split("\n") if line.strip() and line[0] != "#"]
    rows = csv.reader(lines, delimiter=delimiter)
    try:
        unit, *names = [cell.strip() for cell in next(rows, [""])]
        refuse(_check_names(names, source))
        column = {name: position for position, name in enumerate(names)}
        cells = np.full((len(names), len(names)), np.nan)
        seen: set[str] = set()
        problems: list[Problem] = []
        for first, *values in rows:
            name = first.strip()
            problem = _row_problem(name, column, seen, len(values))
            if not problem:
                seen.add(name)
                problem = _fill(cells[column[name]], values)
            if problem:
                problems.append(Problem(f'row "{name[:80]}": {problem}', source))
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", source) from None
    absent = [name for name in names if name not in seen]
    if absent and not problems:
        problems.append(Problem(f"no row for {some(absent)}: cut?", source))
    refuse(problems)
    np.fill_diagonal(cells, np.nan)
    return _Matrix(names, cells, unit, _factor(unit))


def _check_names(names: list[str], source: str) -> list[Problem]:
    message = ""
    if len(names) < 2:
        message = "the first line names no two hosts or GPUs, behind commas or tabs"
    elif len(names) > MAX_NAMES:
        message = f"{len(names)} columns, the most is {MAX_NAMES}"
    elif len(set(names)) < len(names):
        message = "a column comes twice"
    return [Problem(message, source, 1, 1)] if message else []


def _row_problem(name: str, column: dict[str, int], seen: set[str], count: int) -> str:
    if name not in column:
        return "no column has its name"
    if name in seen:
        return "it comes twice"
    if count != len(column):
        return f"{count} cells, the first line has {len(column)}"
    return ""


def _fill(row: FloatArray, values: list[str]) -> str:
    """The values put into ``row``; what is wrong with one, empty when nothing is."""
    try:
        row[:] = [
            np.nan if value.strip().lower() in _EMPTY else float(value)
            for value in values
        ]
    except ValueError as error:
        return str(error)[:120]
    bad = np.isinf(row) | (row < 0) | (row > 1e18)
    return "a bandwidth is negative or too large" if bad.any() else ""


def _factor(unit: str) -> float | None:
    """What makes a cell B/s for one GPU; None when the unit does not say."""
    match = _UNIT.fullmatch(unit)
    if not match:
        return None
    try:
        return parse_bandwidth(f"1{match[1]}")
    except ValueError:
        return None


def _asymmetries(matrix: _Matrix, source: str) -> list[Problem]:
    """Pairs whose two directions differ too much."""
    cells, names = matrix.cells, matrix.names
    low, high = np.fmin(cells, cells.T), np.fmax(cells, cells.T)
    pairs = np.argwhere(np.triu(high > low * MAX_ASYMMETRY))
    return [
        Problem(
            f"{names[a]} to {names[b]} is {cells[a, b]:g}, back {cells[b, a]:g}: more "
            f"than {MAX_ASYMMETRY} times apart",
            source,
            hint="measure again, or leave the slow host out",
        )
        for a, b in pairs[:100].tolist()
    ]


def _both_ways(cells: FloatArray) -> tuple[FloatArray, int]:
    """The slower direction of each pair, and how many pairs have none."""
    speeds = np.fmin(cells, cells.T)
    speeds[speeds == 0] = np.nan
    missing = int(np.isnan(speeds).sum()) - len(cells)
    return speeds, missing // 2


def _hosts(names: list[str]) -> tuple[list[str], IntArray, bool]:
    """Hosts, the host of each name, and whether the names are GPUs."""
    matches = [_GPU.fullmatch(name) for name in names]
    gpus = all(matches)
    own = [match[1] for match in matches if match] if gpus else names
    hosts = list(dict.fromkeys(own))
    number = {host: position for position, host in enumerate(hosts)}
    return hosts, np.array([number[host] for host in own], dtype=np.int64), gpus


def _hosts_of_groups(speeds: FloatArray, of_name: IntArray) -> dict[int, list[int]]:
    """Hosts whose GPUs form groups by bandwidth, and the sizes of the widest groups."""
    found = {}
    for host in np.flatnonzero(np.bincount(of_name) > 2).tolist():
        own = np.flatnonzero(of_name == host)
        groups = clusters_of(speeds[np.ix_(own, own)]).groups
        if groups:
            found[host] = np.bincount(groups[-1]).tolist()
    return found


def _by_host(
    speeds: FloatArray, of_name: IntArray, count: int
) -> tuple[FloatArray, float]:
    """Median of the GPU pairs of each two hosts, and of those inside hosts."""
    if count == len(of_name):
        return speeds, float("nan")
    most = int(np.bincount(of_name).max())
    padded = np.full((len(speeds) + 1, len(speeds) + 1), np.nan)
    padded[:-1, :-1] = speeds
    members = np.full((count, most), len(speeds))
    for host in range(count):
        own = np.flatnonzero(of_name == host)
        members[host, : len(own)] = own
    between = np.empty((count, count))
    with warnings.catch_warnings():
        # Two hosts without any measurement have none: NaN.
        warnings.simplefilter("ignore", RuntimeWarning)
        for host in range(count):
            pairs = padded[members[host]][:, members.ravel()]
            pairs = pairs.reshape(most, count, most).transpose(1, 0, 2)
            between[host] = np.nanmedian(pairs.reshape(count, -1), axis=1)
    np.fill_diagonal(between, np.nan)
    same = of_name[:, None] == of_name[None, :]
    return between, median(speeds[same])


def _times(value: float, factor: float | None) -> float | None:
    return None if factor is None or np.isnan(value) else value * factor


def _add_levels(
    findings: Findings,
    hosts: list[str],
    gpus: list[int] | list[None],
    found: Clusters,
    factor: float | None,
) -> None:
    """A level for each division, the last of all hosts."""
    names = [*(f"group-{i + 1}" for i in range(len(found.groups))), "measured"]
    # Only the fastest groups can be those of NVLink beyond the node.
    findings.levels = tuple(
        Level(
            name,
            None if i == 0 and found.groups else False,
            bandwidth=_times(speed, factor),
        )
        for i, (name, speed) in enumerate(zip(names, found.speeds, strict=True))
    )
    for host, name in enumerate(hosts):
        domains = [f"g{groups[host] + 1}" for groups in found.groups]
        findings.nodes[name] = NodeFacts((*domains, "all"), gpus[host])


def _add_notes(
    findings: Findings,
    hosts: list[str],
    found: Clusters,
    within: float,
    matrix: _Matrix,
    missing: int,
) -> None:
    unit = f" {matrix.unit[:40]}" if matrix.unit.isprintable() else ""
    unit = unit.rstrip()
    if not np.isnan(within):
        findings.notes.append(f"inside hosts: {within:.4g}{unit} (median)")
    divisions = [*found.groups, [0] * len(hosts)]
    for level, groups, speed in zip(
        findings.levels, divisions, found.speeds, strict=True
    ):
        count = len(set(groups))
        what = f"{count} groups of the" if count > 1 else "all"
        findings.notes.append(
            f"tier {level.name}: {what} {len(hosts)} hosts, {speed:.4g}{unit} "
            "(median of its pairs)"
        )
    if matrix.factor is None:
        findings.notes.append(
            "the figures are not used as bandwidths: the corner does not say per GPU"
        )
    if missing:
        findings.notes.append(f"pairs without a measurement: {missing}")
    if found.slow:
        listed = some([f"{hosts[a]} to {hosts[b]}" for a, b in found.slow])
        findings.notes.append(
            f"pairs slower than their group, a bad link?: {len(found.slow)}: {listed}"
        )
