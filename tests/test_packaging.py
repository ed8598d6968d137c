"""What is shipped: a wheel that stands alone, and a container that builds."""

import re
import shutil
import subprocess
import sys
import tomllib
from zipfile import ZipFile

import pytest

from placer.documents.presets import preset_names
from tests.clients.needs import module
from tests.commands import ROOT, python

ENGINES = ("docker", "podman")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    module("build")
    folder = tmp_path_factory.mktemp("dist")
    python("-m", "build", "--wheel", "--outdir", folder, ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_stands_alone(wheel, tmp_path):
    """Installed far from the sources, it places a preset, and says its types."""
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert "placer/py.typed" in names
    for name in preset_names("topologies"):
        assert f"placer/_presets/topologies/{name}.yaml" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/"))]
    target = tmp_path / "installed"
    install = ("-m", "pip", "install", "-q", "--no-deps", "--target")
    python(*install, target, wheel, check=True)
    # -P: the folder it runs in, and so the sources, are out of sight; and those that
    # an editable installation finds before any folder.
    script = (
        "import sys; sys.path.insert(0, sys.argv.pop(1));"
        "sys.meta_path[:] = [one for one in sys.meta_path"
        " if not type(one).__module__.startswith('_editable')]; import placer;"
        "assert placer.__file__.startswith(sys.path[0]);"
        "from placer.__main__ import run; run()"
    )
    place = ["place", "-t", "nvl72", "-j", "quickstart", "-q", "-o", "plan.json"]
    ran = python("-P", "-c", script, target, *place, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "plan.json").is_file()


def test_what_a_release_asks_of_its_wheels_holds():
    """The command that each wheel is tested with runs here, where the kernel is."""
    release = (ROOT / ".github/workflows/release.yml").read_text()
    (script,) = re.findall(r'python -c "(.*)"', release)
    assert python("-c", script).returncode == 0


def test_the_supported_versions_agree():
    """Each Python from the oldest that installs has a classifier, without a gap."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = int(project["requires-python"].removeprefix(">=3."))
    named = [
        int(line.rpartition(".")[2])
        for line in project["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    assert named == [*range(oldest, oldest + len(named))]
    assert sys.version_info.minor in named


def engine():
    """A container engine that answers; none skips the test with the reason."""
    for name in ENGINES:
        if shutil.which(name):
            asked = subprocess.run([name, "info"], capture_output=True, text=True)
            if asked.returncode == 0 and "Cannot connect" not in asked.stderr:
                return name
    pytest.skip(f"no container engine answers ({' or '.join(ENGINES)})")


@pytest.mark.slow
def test_the_container_builds():
    """The image of the Dockerfile runs ``placer``, not as root."""
    name, tag = engine(), "placer-test"
    subprocess.run([name, "build", "-q", "-t", tag, str(ROOT)], check=True)
    try:
        shown = [name, "run", "--rm", tag, "--version"]
        assert subprocess.check_output(shown, text=True).startswith("placer, version")
        user = [name, "run", "--rm", "--entrypoint", "id", tag, "-u"]
        assert subprocess.check_output(user, text=True).strip() == "1000"
    finally:
        subprocess.run([name, "rmi", "-f", tag], check=False)
