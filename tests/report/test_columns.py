"""Text within a width."""

from placer.report.columns import wrapped

TEXT = "1.559 s a step, 8.4 % of 12 GB in 20.1 ms, 2 sites, 3 Boxes and 45 us"


def test_a_number_stays_with_its_unit() -> None:
    """No line begins with a unit, whatever the width, and no word is lost."""
    for width in range(12, 90):
        lines = wrapped(TEXT, "  ", width)
        assert " ".join(line.strip() for line in lines) == TEXT
        assert not {line.split()[0].rstrip(",") for line in lines} & {
            "s",
            "%",
            "GB",
            "ms",
            "us",
        }
