"""One self-contained HTML page: style, script and data inside, nothing from elsewhere.

A content security policy allows the page's own style and script, known by their
digests (W3C, Content Security Policy Level 3), and no request at all.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}
<noscript><pre>{plain}</pre></noscript>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page(
    title: str,
    style: str,
    body: str,
    folder: str,
    scripts: Sequence[str],
    data: Mapping[str, Any],
    plain: str,
) -> str:
    """The page as one text.

    Parameters
    ----------
    title, style, body : str
        The body is HTML.
    folder : str
        Folder of this package with the scripts.
    scripts : sequence of str
        Names of the scripts in their order.
    data : mapping
        What the scripts read, as JSON in the element ``data``.
    plain : str
        Shown where scripts are off.
    """
    script = "\n".join(
        ["", '"use strict";', *(asset(folder, name) for name in scripts)]
    )
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; "
        f"script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'"
    )
    return _PAGE.format(
        policy=policy,
        title=escape(title),
        style=style,
        body=body.rstrip(),
        plain=escape(plain),
        data=_json(data),
        script=script,
    )


def _json(data: Mapping[str, Any]) -> str:
    """Compact JSON that no name inside can end: every ``<`` is written as an escape.

    Floats are written as ``repr``, as in the JSON report.
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c")


def asset(folder: str, name: str) -> str:
    """Text of a file of this package."""
    return (files("placer.report.page") / folder / name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
