"""What a plan was made of: machine, job, allocation and rules, kept in the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from placer.base.errors import InputError, Problem, refuse
from placer.base.hostlist import compress, expand
from placer.base.naming import named
from placer.documents import Document, Value, document_of, known_hint
from placer.job.axes import AXES, EXPERT_AXES
from placer.job.even import axis_of
from placer.job.model import Job
from placer.job.orders import as_planned
from placer.job.read import decode_job
from placer.job.rules import Rules
from placer.job.write import to_document
from placer.placement.host_rules import rules_left, unknown_tiers, with_rules
from placer.placement.plan import Plan
from placer.placement.plan_rules import RULES, rules_of
from placer.topology.allocation import allocate, host_names
from placer.topology.model import Topology
from placer.topology.read import decode_topology
from placer.topology.write import compact_document

USE_SPARES = "use_spares"
_RULES = ("require", "pin", "avoid", "at_most", "spares", USE_SPARES)

_Read = TypeVar("_Read")


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of a plan."""

    topology: Topology  # the whole machine
    job: Job  # as it was read, without what was asked for besides
    # The allocation in launch order; None is every usable node.
    hosts: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()  # hosts of it not to use
    # Requirements beside those of the job.
    require: Mapping[str, str] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)  # rules beside those of the job
    # Whether spare nodes may be used, as after a failure; then rules bind only on hosts
    # that are left.
    use_spares: bool = False

    @classmethod
    def given(
        cls,
        topology: Topology,
        job: Job,
        hosts: Sequence[str] | str | None = None,
        exclude: Sequence[str] | str = (),
        require: Mapping[str, str] | None = None,
        rules: Rules | None = None,
    ) -> Inputs:
        """The inputs as a library call has them: hosts as names or as a text."""
        named = None if hosts is None else tuple(host_names(hosts))
        left_out = tuple(host_names(exclude, "exclude"))
        return cls(topology, job, named, left_out, require or {}, rules or Rules())

    @cached_property
    def machine(self) -> Topology:
        """The allocation as a machine."""
        return allocate(self.topology, self.hosts, self.exclude)

    @cached_property
    def ruled(self) -> Job:
        """The job under its own rules and those asked for besides.

        Raises `InfeasibleError` if every host of a pin has failed.
        """
        job, machine = self.job, self.machine
        if self.require:
            job = with_requirements(job, machine, self.require)
        if not self.use_spares:
            return with_rules(job, machine, self.topology, self.rules)
        left = rules_left(job.rules.and_also(self.rules), machine)
        return with_rules(replace(job, rules=Rules()), machine, self.topology, left)

    def to_document(self) -> dict[str, Any]:
        """The inputs as a plan keeps them, ready for JSON."""
        rules: dict[str, Any] = {"require": dict(self.require)} if self.require else {}
        rules |= self.rules.to_document()
        if self.use_spares:
            rules[USE_SPARES] = True
        return {
            "topology": compact_document(self.topology),
            "job": to_document(self.job),
            "hosts": compress(self._hosts),
            "exclude": compress(self.exclude),
            "rules": rules,
        }

    @property
    def _hosts(self) -> Sequence[str]:
        """The hosts to name: none when they are all that the machine lists."""
        if self.hosts is not None:
            return self.hosts
        listed = self.topology.listed
        if listed is None:
            return ()
        usable = zip(listed.names[0], listed.usable.tolist(), strict=True)
        everyone = tuple(name for name, is_usable in usable if is_usable)
        own = self.topology.node_names
        return () if own == everyone else own


def inputs_of(
    plan: Plan,
    topology: Topology | None = None,
    job: Job | None = None,
    *,
    force: bool = False,
) -> Inputs:
    """What ``plan`` was made of, its job in the order that the plan numbers ranks by.

    ``topology`` and ``job``: instead of those that the plan keeps; an older plan keeps
    none. ``force``: take them although the plan names others.
    """
    kept = plan.inputs
    if not kept and (topology is None or job is None):
        given = {"topology": topology, "job": job}
        missing = [key for key in given if given[key] is None]
        whole = " and the ".join(missing)
        hint = f"give the {whole} it was made for: {', '.join(map(named, missing))}"
        message = "the plan does not keep its inputs: an older placer made it"
        raise InputError(message, hint=hint)
    refuse(_form_problems(kept))
    topology_used = topology or _read(kept, "topology", decode_topology)
    job_used = job or _read(kept, "job", decode_job)
    numbered = planned_job(job_used, plan)
    if not force:
        refuse_others(plan, topology, job)
        refuse(
            Problem(
                f"the plan keeps another {what} than it names: it says "
                f"{_named(stated)}; kept is sha256 {own.sha256[:12]}",
                key=_path(what),
                hint=f"the plan was changed: make it again, give {named(what)}, or "
                f"{named('force', True)}",
            )
            for what, own, stated in _unlike(plan, topology_used, job_used)
        )
    rules: Mapping[str, Any] = kept.get("rules", {})
    if not kept:
        rules = {**plan.rules, "require": plan.bound.get("require") or {}}
        rules |= {USE_SPARES: "failed" in plan.previous}
    return Inputs(
        topology_used,
        numbered,
        _expanded(kept, "hosts") or None,
        _expanded(kept, "exclude"),
        rules.get("require", {}),
        rules_of(rules),
        bool(rules.get(USE_SPARES)),
    )


def planned_job(job: Job, plan: Plan) -> Job:
    """The job in the order of the plan, where the job leaves its order open."""
    if plan.world_size != job.world_size:
        raise InputError(
            f"the plan has {plan.world_size:,} ranks, the job {job.world_size:,}"
        )
    job = as_planned(job, plan.job.get("order", ""))
    own = "-".join(job.parallelism.order)
    order = plan.job.get("order", own)
    if order != own:
        raise InputError(f"the plan numbers ranks by {order}, the job by {own}")
    return job


def kept_topology(plan: Plan) -> Topology | None:
    """The machine that a plan keeps; None where it keeps none."""
    return _read(plan.inputs, "topology", decode_topology) if plan.inputs else None


def refuse_others(plan: Plan, topology: Topology | None, job: Job | None) -> None:
    """Refuse a topology or a job that is not the one ``plan`` was made for."""
    refuse(
        Problem(
            f"the plan was made for another {what}: {_named(stated)}; "
            f"given is {own.name}, sha256 {own.sha256[:12]}",
            hint=f"leave out {named(what)}, for the plan keeps its {what}; or give "
            f"{named('force', True)}"
            if plan.inputs
            else f"give the {what} it was made for, or {named('force', True)}",
        )
        for what, own, stated in _unlike(plan, topology, job)
    )


def _unlike(
    plan: Plan, topology: Topology | None, job: Job | None
) -> Iterator[tuple[str, Topology | Job, Mapping[str, Any]]]:
    """What of the two the plan does not name, and what it names instead."""
    for what, own, stated in (
        ("topology", topology, plan.topology),
        ("job", job, plan.job),
    ):
        if own is not None and own.sha256 != stated.get("sha256"):
            yield what, own, stated


def _named(stated: Mapping[str, Any]) -> str:
    return f"{stated.get('name')}, sha256 {str(stated.get('sha256'))[:12]}"


def _read(
    kept: Mapping[str, Any], key: str, decode: Callable[[Document], _Read]
) -> _Read:
    """The machine or the job of a plan's ``inputs``."""
    try:
        return decode(document_of(kept.get(key, {}), "plan.json"))
    except InputError as error:
        # Lines would be those of no file.
        raise InputError(
            Problem(p.message, key=_path(key, p.key), hint=p.hint)
            for p in error.problems
        ) from None


def _expanded(kept: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The hosts of a host list in a plan's ``inputs``."""
    try:
        return tuple(expand(kept.get(key) or ""))
    except ValueError as error:
        raise InputError(str(error), key=_path(key)) from None


def _path(*keys: str) -> str:
    return ".".join(["inputs", *filter(None, keys)])


def _form_problems(kept: Mapping[str, Any]) -> Iterator[Problem]:
    """What is malformed of ``inputs``, apart from the two documents."""
    for key in ("hosts", "exclude"):
        if not isinstance(kept.get(key) or "", str):
            yield Problem("expected a host list", key=_path(key))
    document = Document("", kept)
    rules = RULES.read(Value(document, kept.get("rules", {}), ("inputs", "rules")), {})
    yield from document.problems
    require = rules.get("require", {})
    if not isinstance(require, dict) or not all(
        isinstance(tier, str) for tier in require.values()
    ):
        yield Problem("expected a tier for each axis", key=_path("rules.require"))
    # A rule that is not understood must not be dropped.
    for key in sorted(rules.keys() - {*_RULES}):
        yield Problem("there is no such rule", key=_path("rules", key))


def with_requirements(job: Job, topology: Topology, added: Mapping[str, str]) -> Job:
    """The job with its own rules and the ``added`` ones (axis or group -> tier).

    ``ep/even`` asks for equal parts of the ep groups, one in each domain of the tier.

    Where both name an axis the stricter rule holds. The digest stays that of the job's
    file: whatever is placed under more rules is a plan for that job.
    """
    axes = (*AXES, *EXPERT_AXES, *(group.name for group in job.groups))
    if job.roles:
        axes = tuple(axis for role in job.roles for axis in role.axes)
    tiers = [tier.name for tier in topology.by_island.tiers]
    rules = [*job.require.items(), *added.items()]
    unknown = [
        Problem(
            f'there is no axis or group "{axis}"',
            key=f"require.{key}",
            hint=known_hint(axis, axes),
        )
        for key in added
        if (axis := axis_of(key)) not in axes
    ]
    refuse([*unknown, *unknown_tiers(topology, rules, Rules())])
    strictest: dict[str, str] = {}
    for axis, tier in rules:
        strictest[axis] = min(tier, strictest.get(axis, tier), key=tiers.index)
    return replace(job, require=strictest)
