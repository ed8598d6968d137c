"""``placer score --jitter`` from end to end."""

import json

import pytest
from click.testing import CliRunner, Result

from placer.cli.main import main


def score(*args: object) -> Result:
    words = ["score", "-t", "dgx-h100-4x8", "-j", "quickstart", *args]
    words += ["baseline:given-order", "--samples", "50"]
    return CliRunner().invoke(main, list(map(str, words)))


def test_json() -> None:
    """The score gains the spread of both times, and says what was drawn."""
    found = score("--jitter", "0.5%", "--seed", "7", "--format", "json")
    assert found.exit_code == 0, found.stderr
    document = json.loads(found.stdout)
    jitter = document["jitter"]
    for key in ("step_time_s", "exposed_scale_out_s"):
        spread = jitter[key]
        assert set(spread) == {"mean", "std", "p05", "p50", "p95"}
        assert spread["p05"] <= spread["p50"] <= spread["p95"]
    assert jitter["step_time_s"]["mean"] > document["step_time_s"]
    assert (jitter["samples"], jitter["seed"]) == (50, 7)
    assert set(jitter["noise"].values()) == {0.005}
    assert (
        found.stdout
        == score("--jitter", "0.005", "--seed", "7", "--format", "json").stdout
    )


def test_by_name() -> None:
    """Compute and tiers can be given by themselves; the others do not vary."""
    found = score("--jitter", "compute=0.1%", "--format", "json")
    jitter = json.loads(found.stdout)["jitter"]
    assert jitter["noise"].pop("compute") == 0.001
    assert set(jitter["noise"].values()) == {0.0}


def test_text() -> None:
    """The text ends with a table; without the option there is none."""
    found = score("--jitter", "1%")
    assert found.exit_code == 0, found.stderr
    assert "spread over 50 steps" in found.stdout
    assert "p95" in found.stdout
    assert "spread" not in score().stdout


@pytest.mark.parametrize(
    ("noise", "what"),
    [
        ("much", "much"),
        ("120%", "120%"),
        ("compute=", "not a share"),
        ("=1%", "=1%"),
        ("compute=1%,compute=2%", "once"),
        ("warp=1%", '"warp"'),
        ("node=1%", "known: compute"),
    ],
)
def test_bad_noise(noise: str, what: str) -> None:
    """Noise that cannot be used ends with 2 and says what is wrong."""
    found = score("--jitter", noise)
    assert (found.exit_code, found.stdout) == (2, "")
    assert what in found.stderr
