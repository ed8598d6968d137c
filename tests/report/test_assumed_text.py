"""The line that says what was assumed."""

from __future__ import annotations

from placer.report.assumed_text import assumed_lines

UPLINKS = {"key": "oversubscription", "value": 1, "why": "w", "option": "--o spine=N"}
RATE = {
    "key": "compute.tflops_per_gpu",
    "value": 1750.0,
    "why": "35 % of the fp8 peak",
    "option": "--tflops RATE",
}


def key(name: str) -> dict:
    return {"key": name, "value": 1, "why": "w", "option": f"--set job.{name}=VALUE"}


def line(assumed: list[dict], what_if: list[dict] = ()) -> str:
    return "\n".join(assumed_lines(assumed, what_if, 1000))


def at(value: float, share: float, name: str = "oversubscription") -> dict:
    return {"key": name, "value": value, "saved_share": share}


def test_each_has_its_option() -> None:
    """One line for all; of the job's keys the first few, in words nothing is lost."""
    found = line([UPLINKS, RATE, *map(key, "abcde")])
    assert found == (
        "assumed: uplinks not oversubscribed (--o spine=N); "
        "1,750 TFLOP/s a GPU, 35 % of the fp8 peak (--tflops RATE); "
        "a 1 (--set job.a=VALUE); b 1 (--set job.b=VALUE); c 1 (--set job.c=VALUE); "
        "2 more keys of the job (-v)"
    )
    assert line([]) == ""


def test_what_the_verdict_rests_on_has_its_own_line() -> None:
    """Savings, costs and nothing at all, each at its value."""
    for shares, words in (
        ((0.038, 0.151), "at 2:1 this plan saves 3.8 %, at 4:1 15.1 %"),
        ((0.002, -0.1), "at 2:1 this plan saves 0.2 %, at 4:1 it costs 10 %"),
        ((0.0, 0.1), "at 2:1 this plan saves nothing, at 4:1 it saves 10 %"),
        ((0.0, 0.0), "at 2:1 and 4:1 this plan saves nothing"),
    ):
        found = line([UPLINKS, RATE], [at(2, shares[0]), at(4, shares[1])])
        told = f"assumed: uplinks not oversubscribed; {words} (--o spine=N)"
        assert found.splitlines()[1] == told
    tried = [at(1250, 0.001, RATE["key"]), at(2400, 0.02, RATE["key"])]
    assert "at 1,250 TFLOP/s this plan saves 0.1 %, at 2,400 TFLOP/s 2 %" in line(
        [RATE], tried
    )


def test_whatever_a_plan_says_can_be_told() -> None:
    """Keys that nobody knows, and texts where numbers are usual, are shown as is."""
    odd = RATE | {"value": "{fast}", "why": "{x}"}
    assert "{fast} TFLOP/s a GPU, {x}" in line([odd])
    other = key("z") | {"value": "a"}
    assert line([other], [at(2, 0.1, "z")]) == (
        "assumed: z a; at z 2 this plan saves 10 % (--set job.z=VALUE)"
    )
