"""The writer of pictures: themes and lengths."""

import pytest

from placer.draw import svg
from tests.draw.pictures import SVG, parse


@pytest.mark.parametrize("theme", svg.THEMES)
def test_themes(theme: str) -> None:
    """Only ``auto`` asks what the reader prefers, and holds both sets of colours."""
    text = svg.to_text(svg.new_picture(10, 10, theme, "nothing"))
    style = parse(text).findtext(f"{SVG}style") or ""
    assert ("prefers-color-scheme" in style) == (theme == "auto")
    assert (svg._LIGHT["page"] in style) == (theme != "dark")
    assert (svg._DARK["page"] in style) == (theme != "light")


def test_lengths() -> None:
    """Lengths have no needless digits, and cut texts show that they are cut."""
    assert [svg.number(x) for x in (1, 0.5, 1 / 3, 100, -0.001)] == [
        "1",
        "0.5",
        "0.33",
        "100",
        "0",
    ]
    assert svg.shortened("rack", 100, 10) == "rack"
    assert svg.shortened("a-long-name", 31, 10) == f"a-lo{svg.ELLIPSIS}"
    assert svg.shortened("a", 0, 10) == svg.ELLIPSIS
