"""PNG has the picture's text in it, or says why there is none."""

import re
import struct
import sys
from collections.abc import Iterator

import pytest

from placer.base.errors import InputError, OutputError
from placer.draw import png as module
from placer.draw import svg
from placer.draw.placement_map import placement_map
from placer.draw.png import png
from placer.testing.strategies import tiny_plan
from tests.clients import needs


@pytest.fixture
def resvg() -> Iterator[None]:
    needs.module("resvg_py")
    module._family.cache_clear()
    yield
    module._family.cache_clear()


@pytest.mark.usefixtures("resvg")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_png(theme: str) -> None:
    """It is 1,600 pixels wide, in the proportions of the picture, with its text."""
    picture = placement_map(tiny_plan(), theme=theme)
    data = png(picture)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert width == 1600
    sides = [float(x) for x in re.findall(r'(?:width|height)="([0-9.]+)"', picture)[:2]]
    assert height / width == pytest.approx(sides[1] / sides[0], abs=0.002)
    assert png(re.sub("<text.*?</text>", "", picture)) != data
    assert png(picture) == data


class Fontless:
    """A resvg on a machine without fonts: texts leave no mark."""

    @staticmethod
    def svg_to_bytes(svg_string: str, **_options: object) -> bytes:
        return re.sub("<text.*?</text>", "", svg_string).encode()


def test_no_font(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any font there is an error rather than a picture without text."""
    monkeypatch.setattr(module, "_resvg", Fontless)
    module._family.cache_clear()
    with pytest.raises(OutputError, match="no font was found"):
        png(placement_map(tiny_plan(), theme="light"))


def test_no_resvg(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package the error says how to get it."""
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(InputError, match=r"placer\[png\]"):
        png(svg.to_text(svg.new_picture(10, 10, "light", "nothing")))
