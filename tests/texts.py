"""Small files as other programs write them, for tests."""

from pathlib import Path

FOLDER = Path(__file__).parent / "data"


def data(name: str) -> str:
    """The file of this name in ``tests/data``."""
    return (FOLDER / name).read_text()
