"""The site: builds without a warning, is found in three clicks, is searched offline."""

import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from placer.formats.schemas import SCHEMAS, file_name, schema_text
from tests.clients.needs import module
from tests.doc_blocks import ROOT

CLICKS = 3


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages, built as ``.ci/run`` builds them: a warning is an error."""
    module("sphinx")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html"]
    built = subprocess.run(
        [*command, "-d", str(folder / "kept"), "docs", str(folder / "html")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"


class Page(HTMLParser):
    """Where the links of a page lead, and the names it can be entered at."""

    def __init__(self, path):
        super().__init__()
        self.links = []
        self.names = set()
        self.loaded = []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = {key: value or "" for key, value in attrs}
        self.names.update(given[key] for key in ("id", "name") if key in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("script", "img", "link"):
            address = given.get("src") or given.get("href")
            self.loaded += [address] if address else []


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def targets(path, links):
    """(link, file, anchor) of the links that stay in the site."""
    for link in links:
        parts = urlsplit(link)
        if not parts.scheme and not parts.netloc:
            inside = (path.parent / unquote(parts.path)).resolve()
            yield link, inside if parts.path else path, unquote(parts.fragment)


@pytest.mark.slow
def test_each_page_is_three_clicks_away(site, pages):
    """From the first page, by links in the text or in the list at its side."""
    reached = {site / "index.html"}
    for _ in range(CLICKS):
        for path in reached & pages.keys():
            reached |= {file for _, file, _ in targets(path, pages[path].links)}
    written = {page.stem for page in (ROOT / "docs").rglob("*.md")}
    of_documents = [path for path in pages if path.stem in written]
    assert len(of_documents) > 40
    assert [path.name for path in of_documents if path not in reached] == []


@pytest.mark.slow
def test_no_link_in_the_site_is_broken(site, pages):
    """Every link leads to a file of the site, and to a place that is in it."""
    broken = []
    for path, page in pages.items():
        for link, file, anchor in targets(path, page.links + page.loaded):
            there = pages.get(file)
            if not file.exists() or (anchor and there and anchor not in there.names):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


@pytest.mark.slow
def test_schemas_are_published(site):
    """Each schema lies beside the first page, under its own name."""
    for name in SCHEMAS:
        assert (site / file_name(name)).read_text() == schema_text(name)


@pytest.mark.slow
def test_search_works_offline(site, browser):
    """Opened from a disk, the search finds the page of a word, and shows its place."""
    browser.open(site / "search.html", "?q=oversubscription")
    for _ in range(100):
        found = browser.run(
            "return new Promise(r => setTimeout(() => r([...document"
            ".querySelectorAll('#search-results li')].map(item =>"
            "[item.querySelector('a').href, item.innerText])), 100))"
        )
        told = [text for address, text in found if "formats.html" in address]
        if any("oversubscription" in text.lower() for text in told):
            break
    assert any("oversubscription" in text.lower() for text in told)
    asked = [r for r in browser.requests() if r.startswith("http")]
    assert asked == []
    assert browser.log() == []
