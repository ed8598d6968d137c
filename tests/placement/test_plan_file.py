"""Plan files: what is written reads back; what is broken is refused with a reason."""

import gzip
import json
import math
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError, OutputError
from placer.documents.files import check_target
from placer.placement.build import build_plan
from placer.placement.plan_consistency import ContradictionError
from placer.placement.plan_file import encode_plan, read_plan, write_plan
from placer.testing.strategies import placed, tiny_plan
from tests.texts import table

NUMBERS = st.floats(-1e300, 1e300) | st.integers(-(2**53), 2**53)
LINK = {"tier": "rack", "domain": "r", "direction": "up", "bytes": 1, "busy_s": 0.5}
SCORES = st.fixed_dictionaries(
    {"step_time_s": NUMBERS, "exposed_s": st.dictionaries(st.text("ab"), NUMBERS)},
    optional={
        "hop_cost": NUMBERS,
        "hottest_links": st.lists(st.just(LINK), max_size=2),
    },
)


def written(path, change=None, drop=""):
    """The tiny plan's file with some keys changed or dropped."""
    data = tiny_plan().to_dict() | (change or {})
    data.pop(drop, None)
    path.write_text(json.dumps(data))
    return path


@given(placed(), SCORES)
def test_round_trip(tmp_path_factory, case, score):
    """A plan read back says the same, and is written as the same bytes again."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    plan = build_plan(*case, score=score)
    write_plan(plan, path)
    again = read_plan(path)
    assert again.to_dict() == plan.to_dict()
    assert encode_plan(again) == path.read_text()
    assert json.loads(path.read_text()) == plan.to_dict()


@pytest.mark.parametrize("suffix", ["json", "json.gz", "json.zst", "JSON.GZ"])
def test_compressed(tmp_path, suffix):
    """A name says whether a plan is compressed; equal plans give equal bytes.

    Reading goes by content: a file that was renamed, or a pipe, is read as well.
    """
    if "zst" in suffix:
        pytest.importorskip("backports.zstd" if sys.version_info < (3, 14) else "zlib")
    paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for path in paths:
        write_plan(tiny_plan(), path)
    data = paths[0].read_bytes()
    assert data == paths[1].read_bytes()
    assert (data[:1] == b"{") == (suffix == "json")
    renamed = paths[0].rename(tmp_path / "renamed")
    assert read_plan(renamed).to_dict() == tiny_plan().to_dict()


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_damaged_compressed_files(tmp_path, suffix):
    """What is cut off or damaged is an input error that names the file.

    A compressed file is read no further than a plain one would be.
    """
    if suffix == "zst":
        pytest.importorskip("backports.zstd" if sys.version_info < (3, 14) else "zlib")
    path = tmp_path / f"plan.json.{suffix}"
    write_plan(tiny_plan(), path)
    data = path.read_bytes()
    for at in range(4, len(data), 29):
        for wrong in (data[:at], data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]):
            path.write_bytes(wrong)
            with suppress(InputError):  # some bits do not count
                assert read_plan(path).to_dict() == tiny_plan().to_dict()
        path.write_bytes(data[:at])
        with pytest.raises(InputError, match=rf"{path.name}: cannot be decompressed"):
            read_plan(path)
    path = tmp_path / "much.json.gz"
    path.write_bytes(gzip.compress(bytes(65 << 20), 1))
    with pytest.raises(InputError, match="holds more than 64 MiB"):
        read_plan(path)


def test_zstd_without_its_library(tmp_path, monkeypatch):
    """Without it reading and writing say what to install, before a search begins."""
    monkeypatch.setitem(sys.modules, "backports", None)
    monkeypatch.setitem(sys.modules, "compression", None)
    path = tmp_path / "plan.json.zst"
    for write in (lambda: write_plan(tiny_plan(), path), lambda: check_target(path)):
        with pytest.raises(OutputError, match=r'pip install "placer\[zstd\]"'):
            write()
    assert not path.exists()
    path.write_bytes(b"\x28\xb5\x2f\xfd....")
    with pytest.raises(InputError, match=r'pip install "placer\[zstd\]"'):
        read_plan(path)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_must_be_finite_to_be_written(tmp_path, value):
    """A number that JSON has no form for is an error, and no file appears."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_plan(tiny_plan(score={"step_time_s": value}), tmp_path / "p.json")
    assert list(tmp_path.iterdir()) == []


COLUMNS, NO_PLANS = table("placement/plan_file.yaml", "what_is_no_plan_is_refused")
NO_PLANS += [('{"format": ' + "9" * 5000 + "}", "not JSON: ")]
NO_PLANS += [("[" * 200_000, "nested too deeply")]
NO_PLANS += [(f'{{"x": {"[" * 40}{"]" * 40}}}', "nested deeper than 32 levels")]


def test_text_is_readable():
    """Lists and mappings of plain values take one line each, and the file is short."""
    text = encode_plan(tiny_plan(score={"crossings": {"tp": {"node": 8}}}))
    assert '\n  "node_of_rank": [0, 0, 1, 1, 2, 2, 3, 3, ' in text
    assert '\n    "crossings": {\n      "tp": {"node": 8}\n    }\n' in text
    assert text.endswith("}\n")
    assert text.count("\n") < 40


def test_unknown_keys_are_let_through_and_nulls_left_out(tmp_path):
    """A later release may add keys; optional facts that are null are not there."""
    score = {"step_time_s": 1, "mood": [1, {"x": "good"}]}
    verdict = {"text": "x", "reason": None}
    change = {"score": score | {"hop_cost": None}, "verdict": verdict, "colour": "red"}
    found = read_plan(written(tmp_path / "p.json", change))
    assert (found.score, found.verdict) == (score, {"text": "x"})


@pytest.mark.parametrize(COLUMNS, NO_PLANS)
def test_what_is_no_plan_is_refused(tmp_path, text, wanted):
    """Files that are not plans of this version are refused with the reason."""
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_plan(path)
    assert wanted in str(caught.value)
    assert str(caught.value).startswith(str(path))


COLUMNS, MALFORMED = table("placement/plan_file.yaml", "malformed_plans_are_refused")
MALFORMED += [
    [{"score": {"hop_cost": 10**400}}, "score.hop_cost: expected a number of 64 bits"]
]


@pytest.mark.parametrize(COLUMNS, MALFORMED)
def test_malformed_plans_are_refused(tmp_path, change, wanted):
    """A value of the wrong kind is named by its key; the plan is not used."""
    with pytest.raises(InputError) as caught:
        read_plan(written(tmp_path / "p.json", change))
    assert wanted in str(caught.value)
    assert not isinstance(caught.value, ContradictionError)


@pytest.mark.parametrize(
    *table("placement/plan_file.yaml", "contradictions_are_refused")
)
def test_contradictions_are_refused(tmp_path, change, wanted):
    """A well-formed plan whose parts do not fit is a ContradictionError."""
    with pytest.raises(ContradictionError) as caught:
        read_plan(written(tmp_path / "p.json", change))
    assert wanted in str(caught.value)
