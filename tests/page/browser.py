"""A headless Chromium driven over the WebDriver protocol (W3C), with little code."""

import json
import re
import subprocess
from base64 import b64decode
from contextlib import contextmanager
from urllib.request import Request, urlopen

from tests.clients.needs import program

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1600,1000",
]


class Browser:
    """One window."""

    def __init__(self, url):
        self._url = url

    def call(self, method, path, body=None):
        """The value that the driver answers with."""
        text = None if body is None else json.dumps(body).encode()
        request = Request(self._url + path, text, method=method)
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, page):
        self.call("POST", "/url", {"url": page.as_uri()})

    def run(self, script, *arguments):
        """What ``return`` in a script gives."""
        body = {"script": script, "args": list(arguments)}
        return self.call("POST", "/execute/sync", body)

    def wait_for(self, script):
        """What a script hands to the function that is its last argument."""
        return self.call("POST", "/execute/async", {"script": script, "args": []})

    def log(self, kind):
        """What has been logged since the last call: ``browser`` or ``performance``."""
        return self.call("POST", "/se/log", {"type": kind})

    def requests(self):
        """Addresses that were asked for since the last call."""
        entries = [json.loads(e["message"])["message"] for e in self.log("performance")]
        return [
            entry["params"]["request"]["url"]
            for entry in entries
            if entry["method"] == "Network.requestWillBeSent"
        ]

    def prefer(self, scheme, media="screen"):
        """Show the page as a reader who prefers ``dark`` or ``light`` sees it."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)

    def command(self, name, **params):
        """The answer to a command of the Chrome DevTools protocol."""
        body = {"cmd": name, "params": params}
        return self.call("POST", "/goog/cdp/execute", body)

    def read(self, page):
        """Open a report afresh, without a word on the console or a request."""
        self.open(page)
        self.run("history.replaceState(null, '', '#'); recall(); showAll(); refresh();")
        assert [url.split("#")[0] for url in self.requests()] == [page.as_uri()]
        assert self.log("browser") == []

    def resize(self, width, height):
        """Give the page so much room."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.command("Emulation.setDeviceMetricsOverride", **size, mobile=False)

    def screenshot(self):
        """What the window shows, as PNG."""
        return b64decode(self.call("GET", "/screenshot"))


@contextmanager
def chromium(folder):
    """A browser that keeps its profile in ``folder``; it ends with the context."""
    driver = program("chromedriver", "chromium-driver")
    flags = [*FLAGS, f"--user-data-dir={folder / 'profile'}"]
    options = {"binary": program("chromium", "chromium"), "args": flags}
    wanted = {
        "browserName": "chrome",
        "goog:chromeOptions": options,
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
    }
    with subprocess.Popen(
        [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            url = f"http://127.0.0.1:{_port(process)}/session"
            body = {"capabilities": {"alwaysMatch": wanted}}
            session = Browser(url).call("POST", "", body)["sessionId"]
            browser = Browser(f"{url}/{session}")
            try:
                browser.call("POST", "/url", {"url": "about:blank"})
                browser.requests()  # those of the start page
                yield browser
            finally:
                browser.call("DELETE", "")
        finally:
            process.terminate()


def _port(process):
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(rb"started successfully on port (\d+)", line):
            return int(found[1])
    raise RuntimeError("chromedriver did not start")
