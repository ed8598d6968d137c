"""JSON Schemas of placer's formats, made from the keys of what reads them."""

from __future__ import annotations

import json
from importlib import import_module

# Module and class of the keys of a format, and the title of its schema.
_MADE = {
    "folder": (
        "placer.formats.folder",
        "Folder",
        "placer.yaml: what commands of placer in its folder take",
    ),
    "job": ("placer.job.model", "Job", "A training job for placer"),
    "jobs": (
        "placer.formats.jobs.job_list",
        "JobList",
        "Several jobs for placer allocate",
    ),
    "plan": ("placer.placement.plan", "Plan", "A plan of placer"),
    "probe": (
        "placer.formats.machines.probe",
        "Probed",
        "A probe: what a node of a job says of itself, one line a node",
    ),
    "topology": ("placer.topology.read", "File", "A machine for placer"),
    "workload": ("placer.job.roles", "Workload", "Roles with transfers for placer"),
}
SCHEMAS = tuple(sorted(_MADE))


def schema_text(name: str) -> str:
    """The JSON Schema of a format, such as ``job``, as it is published."""
    from placer.documents.records import document_schema

    module, record, title = _MADE[name]
    format_name = "" if name == "folder" else f"placer/{name}"  # told by its file name
    whole = document_schema(getattr(import_module(module), record), format_name, title)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def file_name(name: str) -> str:
    """What the schema of a format is called where it is published, version included."""
    return f"placer-{name}-1.json"
