"""What starts the job of a plan today, as its inputs keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.document import document_of
from placer.job.started import decode_started

if TYPE_CHECKING:
    from placer.job.started import Started
    from placer.placement.plan import Plan


def started_of(plan: Plan) -> Started | None:
    """The launcher in the script that the job was read from; None when none is known.

    Raises
    ------
    InputError
        If what the plan keeps of it is malformed.
    """
    job = plan.inputs.get("job")
    kept = job.get("launcher") if isinstance(job, dict) else None
    if not isinstance(kept, dict):
        return None
    content = {key: kept[key] for key in ("name", "source", "line") if key in kept}
    document = document_of(content, "inputs.job.launcher")
    found = decode_started(document.root)
    document.finish()
    return found
