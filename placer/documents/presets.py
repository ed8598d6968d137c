"""Where the files beside the code are: presets, each named by its file; schemas."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from placer.base.errors import InputError
from placer.documents.files import is_file

Kind = Literal["topologies", "jobs", "models"]

_SUFFIX = ".yaml"
_LIST_HINT = {
    "topologies": '"placer topology list" shows all presets; a file needs its path, '
    'a text is like "rack:8 node:18 gpu:4"',
    "jobs": '"placer job list" shows all presets; a file needs its path',
    "models": "presets are {names}; any other model is written as a mapping: "
    "{{layers: 32, hidden: 4096, ffn: 14336, heads: 32, kv_heads: 8, vocab: 128256}}, "
    "or read from its config.json, hf:FILE",
}
_SINGULAR = {"topologies": "topology", "jobs": "job", "models": "model"}


# Old names, for one release after they changed.
RENAMED: dict[Kind, dict[str, str]] = {
    "topologies": {"dgx-h100-32": "dgx-h100-4x8"},
    "jobs": {},
    "models": {},
}


def preset_names(kind: Kind) -> tuple[str, ...]:
    """Names of all presets of a kind, sorted."""
    folder = _folder(kind)
    return tuple(sorted(path.stem for path in folder.glob(f"*{_SUFFIX}")))


def is_preset(kind: Kind, name: str) -> bool:
    """Whether a preset has this name, or had it before."""
    return name in preset_names(kind) or name in RENAMED[kind]


def preset_path(kind: Kind, name: str) -> Path:
    """File of the preset ``name``, or of the one that had this name before."""
    names = preset_names(kind)
    name = RENAMED[kind].get(name, name)
    if name in names:
        return _folder(kind) / f"{name}{_SUFFIX}"
    near = get_close_matches(name[:200], names, n=1, cutoff=0.5)
    suggestion = f'did you mean "{near[0]}"? ' if near else ""
    shown = "".join(c if c.isprintable() else "?" for c in name[:80])
    raise InputError(
        f'there is no {_SINGULAR[kind]} preset or file "{shown}"',
        hint=suggestion + _LIST_HINT[kind].format(names=", ".join(names)),
    )


def find_file(kind: Kind, source: str) -> str:
    """File that ``source`` means: a file (or ``-``) as it is, a preset by its name.

    An existing file, a name that ends in ``.yaml``, ``.yml`` or ``.json`` and anything
    with a path separator are files.
    """
    is_file_name = source.endswith((".yaml", ".yml", ".json")) or "/" in source
    if source == "-" or is_file_name or is_file(source):
        return source
    return str(preset_path(kind, source))


def _folder(kind: Kind) -> Path:
    """Folder of a kind: inside the installed package, else beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "_presets" / kind
    return installed if installed.is_dir() else package.parent / kind
