"""A folder to work in, and the file of the job that a test module calls ``JOB``."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def job(tmp_path, request):
    path = tmp_path / "job.yaml"
    path.write_text(request.module.JOB)
    return str(path)
