"""Objects that notebooks and prompts show: what draws them knows them, not they it."""

from __future__ import annotations

from placer.base.loading import load


class Shown:
    """Shows itself by `placer.report.notebook`, loaded when somebody looks."""

    def __repr__(self) -> str:
        title: str = load("placer.report.notebook").title(self)
        return f"<placer.{type(self).__name__}{title}>"

    def _repr_html_(self) -> str:
        shown: str = load("placer.report.notebook").html(self)
        return shown
