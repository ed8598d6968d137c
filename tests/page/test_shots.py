"""Pictures look as those kept, which somebody looked at; documents show today's."""

from io import BytesIO

import numpy as np
import pytest

from tests.clients.needs import module
from tests.page.browser import chromium
from tests.page.shots import DOCS, KEPT, drawn_docs, shots

# Pictures are compared by blocks of pixels, as machines have other fonts.
BLOCK = 12
DIFFERENT = 40.0  # of 255: mean of a block in any channel
FEW = 0.002  # of all blocks


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What Chromium shows."""
    with chromium() as browser:
        yield dict(shots(browser, tmp_path_factory.mktemp("shots")))


def blocks(png):
    """Mean colour of each block of a picture; shape (rows, columns, 3)."""
    image = module("PIL.Image").open(BytesIO(png)).convert("RGB")
    pixels = np.asarray(image, dtype=np.float64)
    rows, columns = pixels.shape[0] // BLOCK, pixels.shape[1] // BLOCK
    cut = pixels[: rows * BLOCK, : columns * BLOCK]
    return cut.reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["map", "pipeline", "report-before", "report-after"])
def test_looks_as_kept(seen, name, tmp_path):
    """At most a few blocks of a picture differ from the one in the repository."""
    now, kept = blocks(seen[name]), blocks((KEPT / f"{name}.png").read_bytes())
    path = tmp_path / f"{name}.png"
    path.write_bytes(seen[name])
    told = f"{path}: if it should look so, run python -m tests.page.shots"
    assert now.shape == kept.shape, told
    different = np.abs(now - kept).max(axis=2) > DIFFERENT
    assert different.mean() <= FEW, f"{different.mean():.2%} of it differ, {told}"


def test_a_changed_picture_is_seen(seen):
    """Pictures of other placements, or in another theme, do not pass."""
    before, after = blocks(seen["report-before"]), blocks(seen["report-after"])
    assert (np.abs(before - after).max(axis=2) > DIFFERENT).mean() > 20 * FEW


def test_documents_show_todays_pictures():
    """Pictures of the documents are those that the example in them draws."""
    for name, text in drawn_docs():
        kept = (DOCS / "pictures" / name).read_text()
        assert kept == text, f"{name}: python -m tests.page.shots"
