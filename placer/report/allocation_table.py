"""An allocation as text for people: the verdict, the jobs, what is left."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placer.base.hostlist import compress_grid, expand, with_blanks
from placer.base.units import counted, listed, plural
from placer.report.assumed_text import assumed_lines
from placer.report.columns import WIDTH, columns, fitted, paragraphs, wrapped
from placer.report.notebook import html_table
from placer.report.words import NOUN, amount, proved, share_text

# Names in a row, and groups of domains, at the most.
_GROUPS = 2


def grade_text(grade: Mapping[str, Any]) -> str:
    """``costs 8.4 % more than 16 full racks; r07 and r12 hold 3 nodes each``.

    ``grade``: as `placer.allocate` gives it: values of the granted nodes, of the best
    free ones and of the best at all, with the nodes of each in every domain.
    """
    objective, own = grade["objective"], grade["value"]
    free, best = grade["best_free"], grade["best"]
    parts = []
    if _more(own, free["value"]) > 1e-9:
        share = share_text(_more(own, free["value"]))
        mine, theirs = amount(objective, own), amount(objective, free["value"])
        instead = f" ({mine} instead of {theirs})" if mine != theirs else ""
        shape = _shape(free["domains"], grade["tier"])
        parts += [f"costs {share} more than {shape}{instead}", *_odd(grade)]
    else:
        parts.append(
            f"no free nodes are better: {amount(objective, own)}"
            + (" a step" if objective == "time" else "")
        )
    if _more(free["value"], best["value"]) > 1e-9:
        share = share_text(1 - best["value"] / free["value"])
        shape = _shape(best["domains"], grade["tier"])
        parts.append(f"were all nodes free, {shape} would save {share} more")
    if grade["stranded_nodes"] > 0.05:
        parts.append(f"strands {grade['stranded_nodes']:.1f} nodes more")
    elif grade["stranded_nodes"] < -0.05:
        parts.append(f"strands {-grade['stranded_nodes']:.1f} nodes less")
    return "; ".join(parts)


def _more(own: float, other: float) -> float:
    return own / other - 1 if other else 0.0


def _shape(domains: Mapping[str, Sequence[int]], tier: str) -> str:
    """``16 full racks``, or how many nodes each domain gives."""
    if not domains:
        return "the best nodes"
    count = len(domains)
    if all(held == size for held, size in domains.values()):
        return counted(count, f"full {tier}")
    return counts_text([held for held, _ in domains.values()], tier)


def _odd(grade: Mapping[str, Any]) -> list[str]:
    """The domains that hold another number of nodes than those of the best."""
    usual = Counter(held for held, _ in grade["best_free"]["domains"].values())
    by_count: dict[int, list[str]] = defaultdict(list)
    for name, (held, _) in grade["domains"].items():
        if not usual[held]:
            by_count[held].append(name)
    found = []
    for held, names in sorted(by_count.items())[:_GROUPS]:
        nodes = counted(held, "node")
        each = " each" if len(names) > 1 else ""
        verb = "hold" if len(names) > 1 else "holds"
        found.append(f"{_list(names)} {verb} {nodes}{each}")
    return found


def _list(names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        shown = ", ".join(names[: _NAMED - 1])
        return f"{shown} and {len(names) - _NAMED + 1} more"
    return listed(names)


Found = Mapping[str, Any]

# Domains named one by one in a sentence.
_NAMED = 4
# What is said of a search that ended before it was done.
_WHY = {
    "time-limit": " The time limit ended the search.",
    "interrupted": " The search was interrupted.",
}


def allocation_text(found: Found) -> str:
    """The text of an allocation, at most 80 columns wide.

    ``found``: as `placer.allocate.allocation.Allocation.to_dict` gives it.
    """
    grade = found.get("grade")
    return paragraphs(
        [
            wrapped(f"Granted: {grade['text']}.") if grade else [],
            [*wrapped(_verdict(found)), *assumed_lines(found.get("assumed", ()))],
            columns(_table(found)),
            _hosts(found["jobs"]),
            _left(found["left"]),
            wrapped(f"Bound: {found['argument']}.{_WHY.get(found['stop_reason'], '')}"),
        ]
    )


def allocation_html(found: Found) -> str:
    """The verdict and the jobs, for a notebook."""
    return html_table(_table(found), _verdict(found), " ".join(_left(found["left"])))


def _verdict(found: Found) -> str:
    """What the allocation is worth, in one sentence."""
    jobs = found["jobs"]
    behind = [job for job in jobs if _behind(job) > 1e-9]
    first = jobs[0]
    noun = NOUN[first["objective"]]
    parts = []
    if len(jobs) == 1:
        value = amount(first["objective"], first["value"])
        parts.append(f"{_where(first)}: {noun} {value}")
    else:
        parts.append(f"{len(jobs)} jobs on {sum(j['nodes'] for j in jobs):,} nodes")
        # What they lose to each other.
        company = "each as good as alone on all free nodes"
        if behind:
            share = share_text(max(map(_behind, behind)))
            company = f"{len(behind)} of them take more than alone, {share} at most"
            if len(behind) == 1:
                company = f"{behind[0]['name']} takes {share} more than alone"
        parts.append(company)
    if moved := [job["name"] for job in jobs if job["moved"]]:
        parts.append(f"{', '.join(moved)} {'moves' if len(moved) == 1 else 'move'}")
    cost, least = found["cost"], found["lower_bound"]
    parts.append(proved(found["status"], least, (cost - least) / cost if cost else 0.0))
    return "; ".join(parts) + "."


def _behind(job: Mapping[str, Any]) -> float:
    """How much more than alone on all free nodes a job takes, as a share."""
    ideal = job["ideal_value"]
    return job["value"] / ideal - 1 if ideal else 0.0


def _table(found: Found) -> list[list[str]]:
    head = ["job", "nodes", "domains", NOUN[found["jobs"][0]["objective"]]]
    rows = [[*head, "alone", "behind", "bound"]]
    for job in (*found["jobs"], *found.get("kept", ())):
        value, ideal = (
            amount(job["objective"], job[key]) for key in ("value", "ideal_value")
        )
        behind = share_text(_behind(job)).replace("less than ", "<")
        bound = job["lower_bound"]
        rows.append(
            [
                job["name"],
                f"{job['nodes']:,}",
                f"{len(job['nodes_by_domain']):,}" if job["nodes_by_domain"] else "",
                value,
                ideal,
                f"+{behind}" if _behind(job) > 1e-9 else "",
                amount(job["objective"], bound) if bound else "stays",
            ]
        )
    return rows


def _where(job: Mapping[str, Any]) -> str:
    """``32 nodes, 16 in each of 2 racks``."""
    nodes = counted(job["nodes"], "node")
    counts = job["nodes_by_domain"]
    if not counts:
        return nodes
    tier = job["tier"]
    if len(counts) == 1:
        return f"{nodes} in one {tier}"
    return f"{nodes}, {counts_text(list(counts.values()), tier)}"


def counts_text(counts: Sequence[int], tier: str) -> str:
    """How many nodes domains give: ``16 in each of 2 racks, 14 in one``."""
    groups = Counter(counts)
    if len(groups) > _NAMED:
        racks = counted(len(counts), tier)
        return f"{min(counts)} to {max(counts)} in {racks}"
    parts: list[str] = []
    for count, number in sorted(groups.items(), reverse=True):
        noun = "" if parts else f" {plural(tier, number)}"
        domains = f"each of {number}{noun}" if number > 1 else f"one{noun}"
        parts.append(f"{count} in {domains}")
    return ", ".join(parts)


def _hosts(jobs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for job in jobs:
        hosts = compress_grid(expand(job["hosts"]))
        line = f"{job['name']}: {hosts}"
        yield from [line] if len(line) <= WIDTH else fitted([with_blanks(line)])


def _demand(often: Mapping[str, float]) -> str:
    """``16 (40%), 8 (30%) or others (30%)``: the most frequent sizes, largest first."""
    named = sorted(often, key=lambda n: -often[n])[:_NAMED]
    texts = [f"{n} ({p:z.0%})" for n, p in often.items() if n in named]
    if len(often) > _NAMED:
        texts.append(f"others ({1 - sum(often[n] for n in named):z.0%})")
    return ", ".join(texts)


def _left(left: Mapping[str, Any]) -> list[str]:
    """What is free afterwards, by the measure that broke ties."""
    count = left["free_nodes"]
    text = f"Left: {counted(count, 'node')}"
    if left["largest_free"]:
        most = ", ".join(
            f"{n:,} in one {tier}" for tier, n in left["largest_free"].items()
        )
        whole = ", ".join(
            counted(n, f"whole {tier}") for tier, n in left["whole_domains"].items()
        )
        text += f", {whole}, at most {most}"
    if "useful_nodes" in left:
        demand = _demand(left["demand"])
        within = " in one domain" if left["largest_free"] else ""
        text += (
            f". Jobs to come of {demand} nodes{within} can fill "
            f"{left['useful_nodes']:,.1f} of them, {left['stranded_nodes']:,.1f} are "
            "stranded"
        )
    text += f". Slurm's fragmentation: {left['slurm_fragmentation']:,}."
    return wrapped(text)
