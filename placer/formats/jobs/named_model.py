"""A model that a configuration names and does not describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.base.naming import named
from placer.formats.jobs.settings import words_of

if TYPE_CHECKING:
    from placer.formats.jobs.findings import Findings
    from placer.formats.jobs.settings import Settings


def ask_for_model(settings: Settings, *keys: str) -> None:
    """Ask for the shape by the name that stands under one of ``keys``.

    Nothing where another source tells the shape.
    """
    place, unknown = settings.place(*keys), settings.unknown(*keys)
    name = words_of(unknown[1]) if unknown else settings.text(*keys)
    if not name:
        return
    option = f", or {named('settings', {unknown[0]: 'VALUE'})}" if unknown else ""

    def ask(found: Findings) -> None:
        if not found.has("model.layers"):
            message = f"the shape of {name} is not in the file"
            hint = f"join its config.json: {named('job', 'hf:FILE')}{option}"
            found.ask("model.layers", message, hint, place)

    settings.found.rules.append(ask)
