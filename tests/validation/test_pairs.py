"""Pairs of public steps: one predicts the other."""

from __future__ import annotations

import pytest

from validation import pairs

# Each of these is explained on the page.
MISSED = {
    "gpt-oss 120B, 64 B300: ep 64 -> 8",
    "Qwen3 30B, 8 B200: micro-batch 1 -> 4",
    "Moonlight 16B, 8 H100: layernorm and moe_act recomputed",
    "Llama 3.1 8B, B200: 32 GPUs -> 256",
    "Llama 3.1 8B, H100: 64 GPUs -> 128, tp 2",
}


def test_pairs_predict_each_other() -> None:
    """The median error is at most 2 %; no more pairs are missed than are explained."""
    found = {p.title: pairs.error(p) for p in pairs.pairs() if not p.untested}
    median, _ = pairs.judged(list(found.values()))
    assert median <= pairs.MEDIAN
    missed = {title for title, error in found.items() if abs(error) > pairs.MOST}
    assert missed <= MISSED


def test_steps_that_follow_evaluations_are_not_judged() -> None:
    """Both of MLPerf's DeepSeek-V3 are shown, with the reason."""
    left = {pair.title: pair.untested for pair in pairs.pairs() if pair.untested}
    assert len(left) == 2
    assert all("DeepSeek-V3" in title for title in left)
    assert set(left.values()) == {"each step follows an evaluation"}


def test_the_first_step_is_what_was_measured() -> None:
    """A pair whose second job is its first is predicted as it was measured."""
    for pair in pairs.pairs()[:2]:
        same = pairs.Pair(
            pair.title,
            pair.source,
            pair.machine,
            (pair.jobs[0], pair.jobs[0]),
            (pair.steps_s[0], pair.steps_s[0]),
            "",
        )
        assert pairs.error(same) == pytest.approx(0.0, abs=1e-6)
