"""Pictures look as those kept, which somebody looked at; documents show today's.

No serious fault for those with a screen reader or a keyboard, by axe-core.
"""

from io import BytesIO

import numpy as np
import pytest

import placer
from tests.clients.needs import missing, module
from tests.page.browser import chromium
from tests.page.plans import two_plans
from tests.page.shots import DOCS, KEPT, drawn_docs, example, pipeline_of, shots

# Pictures are compared by blocks of pixels, as machines have other fonts.
BLOCK = 12
DIFFERENT = 40.0  # of 255: mean of a block in any channel
FEW = 0.002  # of all blocks


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What Chromium shows."""
    # It ends here: two cannot be driven at once.
    with chromium() as browser:
        return dict(shots(browser, tmp_path_factory.mktemp("shots")))


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


@pytest.mark.slow
def test_a_changed_picture_is_seen(seen):
    """Pictures of other placements, or in another theme, do not pass."""
    before, after = blocks(seen["report-before"]), blocks(seen["report-after"])
    assert (np.abs(before - after).max(axis=2) > DIFFERENT).mean() > 20 * FEW


def test_documents_show_todays_pictures():
    """Pictures of the documents are those that the example in them draws."""
    for name, text in drawn_docs():
        kept = (DOCS / "pictures" / name).read_text()
        assert kept == text, f"{name}: python -m tests.page.shots"


ASK = """
const done = arguments[0];
axe.run().then(
  (found) => done(found.violations.map((fault) => [fault.id, fault.impact,
    fault.nodes.map((node) => node.html.slice(0, 160))])),
  (error) => done([[String(error), "critical", []]]));
"""
FRAME = """<!doctype html><html lang="en"><title>Pipeline</title><style>
:root{color-scheme:light dark}</style><main><h1>Pipeline</h1>%s</main></html>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    old, new, _ = two_plans()
    texts = {
        "report": placer.report_html(new, old),
        "alone": placer.report_html(new, None),
        "pipeline": FRAME % pipeline_of(example(), "auto"),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    found = {name: folder / f"{name}.html" for name in texts}
    return found | {"site": DOCS.parent / "site" / "index.html"}


def serious(browser, page):
    """Faults that axe-core calls serious or critical."""
    browser.open(page)
    axe = module("axe_playwright_python.base").AXE_SCRIPT
    browser.run(f"{axe}; window.axe = axe;")
    found = browser.wait_for(ASK)
    return [fault for fault in found if fault[1] in ("serious", "critical")]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "alone", "pipeline", "site"])
def test_no_serious_fault(browser, pages, name, scheme):
    """The page has none, light or dark."""
    if not pages[name].exists():
        missing("the site is not built (sphinx-build -W docs site)")
    browser.prefer(scheme)
    assert serious(browser, pages[name]) == []


def test_faults_are_found(browser, tmp_path):
    """A picture without words and pale text are told, so silence means something."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<!doctype html><html lang=en><title>Bad</title><main><img src='data:,'>"
        "<p style='color:#ccc;background:#fff'>pale</p></main></html>"
    )
    assert {str(fault[0]) for fault in serious(browser, page)} >= {
        "image-alt",
        "color-contrast",
    }
