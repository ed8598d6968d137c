"""A window of headless Chromium, by Playwright."""

from contextlib import contextmanager

from tests.clients import needs

CALL = "([script, given]) => new Function(script).apply(null, given)"
WAIT = "(script) => new Promise((done) => new Function(script)(done))"


class Browser:
    """One window."""

    def __init__(self, page):
        self._page = page
        self._said, self._asked = [], []
        page.on("console", lambda message: self._said.append(message.text))
        page.on("pageerror", lambda error: self._said.append(str(error)))
        page.on("request", lambda request: self._asked.append(request.url))

    def open(self, path, query=""):
        self._page.goto(path.as_uri() + query)

    def run(self, script, *arguments):
        """What ``return`` in a script gives."""
        return self._page.evaluate(CALL, [script, arguments])

    def wait_for(self, script):
        """What a script hands to the function that is its argument."""
        return self._page.evaluate(WAIT, script)

    def log(self):
        """What has been said on the console since the last call."""
        said, self._said = self._said, []
        return said

    def requests(self):
        """Addresses that were asked for since the last call."""
        asked, self._asked = self._asked, []
        return asked

    def prefer(self, scheme):
        """Show the page as a reader who prefers ``dark`` or ``light`` sees it."""
        self._page.emulate_media(color_scheme=scheme)

    def read(self, path):
        """Open a report afresh, without a word on the console or a request."""
        self.open(path)
        self.run("history.replaceState(null, '', '#'); recall(); showAll(); refresh();")
        assert [url.split("#")[0] for url in self.requests()] == [path.as_uri()]
        assert self.log() == []

    def resize(self, width, height):
        """Give the page so much room."""
        self._page.set_viewport_size({"width": width, "height": height})

    def screenshot(self, **part):
        """What the window shows, or a part of the page, as PNG."""
        return self._page.screenshot(**part)


@contextmanager
def chromium():
    """A browser that ends with the context."""
    playwright = needs.module("playwright.sync_api").sync_playwright
    program = needs.program("chromium", "chromium")
    with playwright() as driver:
        window = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield Browser(window.new_page(viewport={"width": 1600, "height": 1000}))
        window.close()
