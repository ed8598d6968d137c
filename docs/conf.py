"""The site: ``sphinx-build -W docs site``."""

import ast
import itertools
import json
import re
from importlib.metadata import version as version_of
from pathlib import Path

from placer.documents.keys import keys_of
from placer.documents.records import plain_words
from placer.formats.schemas import SCHEMAS, file_name, schema_text

project = "placer"
author = copyright = "placer contributors"
version = release = version_of("placer")
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx_click"]
html_theme = "furo"
html_title = "placer"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["scripts"]
html_search_scorer = str(Path(__file__).parent / "scripts" / "scorer.js")
exclude_patterns = ["conf.py"]
myst_heading_anchors = 4
nb_execution_mode = "force"  # notebooks are kept without what they print
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
myst_enable_extensions = ["colon_fence"]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
suppress_warnings = ["misc.highlighting_failure"]  # a shell session is no program


def setup(app):
    """Pages say the level of each heading, and search shows what they say."""
    app.connect("html-page-context", _say_levels, priority=900)
    app.connect("html-page-context", _keep_text)
    app.connect("build-finished", _write_texts)
    app.connect("source-read", _fill_catalogue)
    app.connect("source-read", _fill_keys)
    app.connect("autodoc-process-docstring", _add_keys, priority=400)  # then numpydoc


TEXTS = {}
SOLVE = Path(__file__).parents[1] / "placer" / "solve"
ROOMS = (
    *("construct", "annealing/native/moves", "rules", "bounds"),
    *("problem", "tree", "count", "programs"),
)


def _fill_catalogue(_app, page, source):
    """The catalogue of the search is what its files say of themselves."""
    if page == "reference/catalogue":
        for room in ROOMS:
            paths = sorted(
                (SOLVE / room).rglob("*.*pp" if "native" in room else "*.py")
            )
            entries = [_entry(path) for path in paths or [SOLVE / f"{room}.py"]]
            source[0] = source[0].replace(f"<!-- {room} -->", "\n".join(entries))


def _entry(path):
    """What a file says it is: its docstring, or the comment that it begins with."""
    text = path.read_text()
    if path.suffix == ".py":
        said = ast.get_docstring(ast.parse(text)) or ""
    else:
        lines = text.splitlines()
        end = next(i for i, line in enumerate(lines) if not line.startswith("//"))
        said = "\n".join(line.removeprefix("//").strip() for line in lines[:end])
    if path.name == "__init__.py" or not said:
        return ""
    name = path.relative_to(SOLVE).as_posix()
    return f"### `{name}`\n\n{said}\n"


def _fill_keys(_app, page, source):
    """The keys of each file are what its JSON Schema says of them."""
    if page == "reference/keys":
        source[0] = re.sub(
            "<!-- keys: ([a-z]+) -->", lambda found: _key_table(found[1]), source[0]
        )


def _key_table(name):
    """A row for each key of a schema; keys of one meaning share it."""
    schema = json.loads(schema_text(name))
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for said, keys in itertools.groupby(_keys(schema), key=lambda row: row[1:]):
        names = ", ".join(f"`{path}`" for path, *_ in keys)
        lines.append(f"| {names} | {' | '.join(said)} |")
    return "\n".join(lines)


def _keys(schema, path=""):
    """Path, type, default and meaning of every key below a place of a schema."""
    for key, value in schema.get("properties", {}).items():
        needed = "required" if key in schema.get("required", ()) else ""
        default = f"`{json.dumps(value['default'])}`" if "default" in value else needed
        meaning = value.get("description", "").replace("|", "\\|")
        yield path + key, _type(value), default, meaning
        yield from _keys(value, f"{path}{key}.")
    if "items" in schema:
        yield from _keys(schema["items"], f"{path.removesuffix('.')}[].")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _keys(schema["additionalProperties"], f"{path}*.")
    for option in schema.get("anyOf", ()):
        yield from _keys(option, path)


def _type(value):
    """What a value may be, in words."""
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{option or 'null'}`" for option in value["enum"])
    if "$ref" in value:
        return value["$ref"].rpartition("/")[2]
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(_type, value["anyOf"])))
    kinds = value.get("type", "any")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _add_keys(_app, what, _name, described, _options, lines):
    """Attributes that keys fill are described as the keys are."""
    known = keys_of(described) if what == "class" else ()
    known = [k for k in known if k.attribute]
    if known and known[0].attribute not in lines:
        if "Attributes" not in lines:
            lines += ["", "Attributes", "----------"]
        said = [(each.attribute, f"    {plain_words(each.says)}") for each in known]
        at = lines.index("Attributes") + 2
        lines[at:at] = [line for pair in said for line in pair]


def _keep_text(app, page, _template, context, _tree):
    """A page opened from a disk cannot fetch others: their texts lie beside it."""
    if page == "search":
        app.add_js_file("excerpts.js")
    if context.get("body"):
        TEXTS[page] = f'<div role="main">{context["body"]}</div>'


def _write_texts(app, error):
    if error is None and app.builder.name == "html":
        for name in SCHEMAS:
            (Path(app.outdir) / file_name(name)).write_text(schema_text(name))
        text = f"const TEXTS = {json.dumps(TEXTS)};"
        (Path(app.outdir) / "_static" / "texts.js").write_text(text)


def _say_levels(*arguments):
    """Sphinx says that captions of contents are headings, but not of which level."""
    context = arguments[3]
    for part in ("body", "furo_navigation_tree"):
        text = context.get(part) or ""
        context[part] = text.replace('role="heading">', 'role="heading" aria-level=2>')
