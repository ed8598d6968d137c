import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=30)
settings.register_profile(
    "ci", settings.get_profile("default"), derandomize=True, database=None
)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def samples() -> Path:
    """Folder of captured files of the formats placer reads, where there is one."""
    folder = os.environ.get("PLACER_SAMPLES")
    if not folder:
        pytest.skip("PLACER_SAMPLES does not name a folder")
    return Path(folder)
