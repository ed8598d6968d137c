"""What lies in ``tests/data``, and files of placer's own with a few keys."""

import json
from functools import cache
from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).parent / "data"
# The compiled loader where there is one, which takes an eighth of the time.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def data(name):
    """The file of this name."""
    return (FOLDER / name).read_text()


@cache
def content(name):
    """What the YAML file of this name says."""
    return yaml.load(data(name), Loader=LOADER)


def table(name, test):
    """The columns and rows of a test, as ``pytest.mark.parametrize`` takes them."""
    found = content(name)[test]
    return found["columns"], found["rows"]


def file_text(format, /, **keys):
    """A file of a format with these keys, called ``small`` unless they say it."""
    head = {"format": f"placer/{format}", "version": 1, "name": "small"}
    return json.dumps(head | keys)


def cases(folder):
    """Every case of the tables of a folder, called by its table and what it says.

    A case that has ``each`` stands for several, each with what it adds; ``texts`` of a
    table are texts that its cases name.
    """
    found = []
    for path in sorted((FOLDER / folder).glob("*.yaml")):
        read = content(path.relative_to(FOLDER))
        known = {"texts": read["texts"]} if "texts" in read else {}
        for case in read["cases"]:
            for more in case.pop("each", [{}]):
                title = f"{path.stem}: {case['says']}"
                found.append(pytest.param(known | case | more, id=title))
    return found


class Texts:
    """Texts by what a table says of them.

    That is the name of a text, the text itself, ``{text: [one, after, another]}``,
    ``{changed: [text, old, new, ...]}``, something that is built, or data, which is
    written as JSON.
    """

    def __init__(self, known, built):
        self.known = known
        self.built = {"text": self._joined, "changed": self._changed} | dict(built)

    def __call__(self, source, indent=1):
        if isinstance(source, str):
            found = self.known.get(source, source)
            return found if isinstance(found, str) else self(found)
        if isinstance(source, dict) and len(source) == 1:
            ((name, words),) = source.items()
            if name in self.built:
                return self.built[name](words)
        return json.dumps(source, indent=indent)

    def _joined(self, parts):
        return "".join(map(self, parts))

    def _changed(self, words):
        text = self(words[0])
        for old, new in zip(words[1::2], words[2::2], strict=True):
            assert self(old) in text, old
            text = text.replace(self(old), self(new))
        return text
