import gc
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import settings

from tests.marks import runs_on
from tests.page.browser import chromium

settings.register_profile("default", deadline=None, max_examples=30)
settings.register_profile(
    "ci", settings.get_profile("default"), derandomize=True, database=None
)
settings.load_profile("ci" if os.environ.get("CI") else "default")
# Without compiled files each start of the command takes a second more.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_addoption(parser):
    """The option with which a change runs some of the slow tests, others each day."""
    parser.addoption(
        "--one-of",
        type=int,
        default=1,
        metavar="N",
        help="run every N-th slow test, which ones depends on the day",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep what is collected out of the collections of garbage, then and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config, items):
    """Leave out slow tests that are not of this day."""
    parts, today = config.getoption("--one-of"), datetime.now(UTC).toordinal()
    left_out = [
        item
        for item in items
        if item.get_closest_marker("slow") and not runs_on(today, item.nodeid, parts)
    ]
    config.hook.pytest_deselected(items=left_out)
    gone = {id(item) for item in left_out}
    items[:] = [item for item in items if id(item) not in gone]


@pytest.fixture(scope="session")
def samples():
    """Folder of captured files of the formats placer reads, where there is one."""
    folder = os.environ.get("PLACER_SAMPLES")
    if not folder:
        pytest.skip("PLACER_SAMPLES does not name a folder")
    return Path(folder)


@pytest.fixture(scope="module")
def browser():
    """A window of headless Chromium."""
    with chromium() as found:
        yield found
