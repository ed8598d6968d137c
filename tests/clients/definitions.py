"""Objects of custom kinds against their definitions, as an API server would take them.

JSON schemas let keys pass that they do not name, and a server drops those in silence:
``replicatedJobz`` would make a JobSet of no jobs. So the keys are walked as well.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@cache
def served_schema(path: Path, version: str) -> Any:
    """The schema of a served version in a CustomResourceDefinition."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    definition = yaml.load(path.read_text(), Loader=loader)
    (schema,) = (
        row["schema"]["openAPIV3Schema"]
        for row in definition["spec"]["versions"]
        if row["name"] == version and row["served"]
    )
    return schema


def unknown_keys(schema: Any, value: Any, at: str = "") -> Iterator[str]:
    """Paths of the keys that the schema does not name.

    The inside of the outermost ``metadata`` is the server's own and left out, as is
    what ``x-kubernetes-preserve-unknown-fields`` lets through.
    """
    if isinstance(value, list):
        for number, inside in enumerate(value):
            yield from unknown_keys(schema["items"], inside, f"{at}[{number}]")
    if not isinstance(value, dict):
        return
    named = schema.get("properties", {})
    others = schema.get("additionalProperties")
    for key, inside in value.items():
        if key == "metadata" and not at:
            continue
        if key in named:
            yield from unknown_keys(named[key], inside, f"{at}.{key}")
        elif isinstance(others, dict):
            yield from unknown_keys(others, inside, f"{at}.{key}")
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{at}.{key}"
