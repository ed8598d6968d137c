"""Where presets are found, in a checkout and in an installed package."""

import pytest

from placer.base.errors import InputError
from placer.documents import presets


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with two job presets beside the package."""
    package = tmp_path / "placer"
    package.mkdir()
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    for name in ("moe-large", "dense-small"):
        (jobs / f"{name}.yaml").touch()
    monkeypatch.setattr(presets, "__file__", str(package / "documents/presets.py"))
    return tmp_path


def test_the_installed_folder_comes_first(checkout):
    """What the package carries wins over the folder beside it."""
    installed = checkout / "placer/_presets/jobs"
    installed.mkdir(parents=True)
    (installed / "other.yaml").touch()
    assert presets.preset_names("jobs") == ("other",)


def test_old_names_lead_to_their_presets():
    """Each old name is none of a preset, and leads to one that there is."""
    for kind, renamed in presets.RENAMED.items():
        for old, new in renamed.items():
            assert old not in presets.preset_names(kind)
            assert presets.preset_path(kind, old) == presets.preset_path(kind, new)


@pytest.mark.parametrize("name", ["moe-larg", "", "../jobs/moe-large", "x" * 5000])
@pytest.mark.usefixtures("checkout")
def test_an_unknown_name_is_an_input_error(name):
    """Anything but a preset's name is refused with the way to list them."""
    with pytest.raises(InputError, match="placer job list") as caught:
        presets.preset_path("jobs", name)
    with pytest.raises(InputError, match="no job preset"):
        presets.find_file("jobs", "a\0b")  # which no system takes
    assert ('did you mean "moe-large"' in str(caught.value)) == ("moe-larg" in name)


def test_what_is_a_file(checkout, monkeypatch):
    """Suffixes and path separators mean files, present or not.

    A file of the working folder is taken before the preset of that name.
    """
    for source in ("-", "x.yaml", "x.yml", "x.json", "folder/x", "./dense-small"):
        assert presets.find_file("jobs", source) == source
    assert presets.find_file("jobs", "dense-small").endswith("jobs/dense-small.yaml")
    monkeypatch.chdir(checkout)
    (checkout / "dense-small").touch()
    assert presets.find_file("jobs", "dense-small") == "dense-small"


@pytest.mark.parametrize("kind", ["topologies", "jobs"])
def test_sources_are_whole_where_they_are_shown(kind):
    """Whoever reads `placer topology show` has no file whose head would say more."""
    for name in presets.preset_names(kind):
        text = presets.preset_path(kind, name).read_text(encoding="utf-8")
        assert "this file" not in text.partition("\nsources:")[2], name
