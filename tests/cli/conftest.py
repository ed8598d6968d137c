"""A folder to work in, and the file of the job that a test module calls ``JOB``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def job(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = tmp_path / "job.yaml"
    path.write_text(request.module.JOB)
    return str(path)
