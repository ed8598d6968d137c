"""Jobs of small texts."""

import pytest

from placer.base.naming import as_options
from placer.formats.jobs.job import Options, open_job


@pytest.fixture(autouse=True)
def read_by_the_command():
    """What is asked for is called as on the command line."""
    with as_options():
        yield


@pytest.fixture
def job_of(tmp_path):
    """The job of a text of a format, with what else a job needs."""

    def read(name, text, *, gpus=None, select=None, given=None, join=""):
        path = tmp_path / "source"
        path.write_text(text)
        specs = [f"{name}:{path}"]
        if join:
            shape = tmp_path / "config.json"
            shape.write_text(join)
            specs.append(f"hf:{shape}")
        settings = {key: str(value) for key, value in (given or {}).items()}
        options = Options(gpus=gpus, tflops=400, settings=settings, select=select)
        return open_job(specs, options).job()

    return read
