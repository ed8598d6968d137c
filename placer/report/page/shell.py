"""One self-contained HTML page: style, script and data inside, nothing from elsewhere.

A content security policy allows the page's own style and script, known by their
digests (W3C, Content Security Policy Level 3), and no request at all. Templates are
Jinja's: what they are given is escaped, and a name that they are not given is an error.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined


def page(
    title: str,
    style: str,
    body: str,
    scripts: Sequence[str],
    data: Mapping[str, Any],
    plain: str,
) -> str:
    """The page as one text.

    Parameters
    ----------
    title, style, body : str
        The body is HTML.
    scripts : sequence of str
        Names of the scripts in their order.
    data : mapping
        What the scripts read, as JSON in the element ``data``.
    plain : str
        Shown where scripts are off.
    """
    script = "\n".join(["", '"use strict";', *(asset(name) for name in scripts)])
    return rendered(
        "document.html",
        digests={"style": _digest(style), "script": _digest(script)},
        title=title,
        style=style,
        body=body.rstrip(),
        plain=plain,
        data=_json(data),
        script=script,
    )


def rendered(name: str, **given: Any) -> str:
    """A template of this package, filled in."""
    return _templates().get_template(name).render(given)


@cache
def _templates() -> Environment:
    return Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _json(data: Mapping[str, Any]) -> str:
    """Compact JSON that no name inside can end: every ``<`` is written as an escape.

    Floats are written as ``repr``, as in the JSON report.
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c")


def asset(name: str) -> str:
    """Text of a file of the page."""
    return (files("placer.report.page") / "report" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
