"""A model that a configuration names and does not describe."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.sources.findings import Findings
    from placer.sources.settings import Settings


def ask_for_model(settings: Settings, *keys: str) -> None:
    """Ask for the shape by the name that stands under one of ``keys``.

    Nothing where another source tells the shape.
    """
    name, place = settings.text(*keys), settings.place(*keys)
    if not name:
        return

    def ask(found: Findings) -> None:
        if not found.has("model.layers"):
            message = f"the shape of {name} is not in the file"
            hint = "join its config.json: -j hf:FILE"
            found.ask("model.layers", message, hint, place)

    settings.found.rules.append(ask)
