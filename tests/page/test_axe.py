"""No serious fault for those with a screen reader or a keyboard, by axe-core."""

import pytest

import placer
from tests.clients.needs import missing, module
from tests.page.plans import two_plans
from tests.page.shots import DOCS, example, pipeline_of

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
