"""Steps of MLPerf logs: which lines count."""

import json

from validation.mlperf_log import step_times, summary


def line(value, before=""):
    entry = {"event_type": "POINT_IN_TIME", "key": "tracked_stats", "value": value}
    return f"{before}:::MLLOG {json.dumps(entry)}"


def test_steps_count_and_blocks_do_not():
    """One entry a step, in order, of either kind of log; nothing else."""
    text = "\n".join(
        [
            "0: starting",
            line({"train_step_timing": 11.05}),
            line({"validation_time": 2.9}),
            line({"train_step_time": 1.7, "reduced_train_loss": 3.7}, "6144: "),
            line({"train_step_time": 1.9}, "   0: "),
            line({"throughput": 1e6}),
        ]
    )
    assert step_times(text) == [11.05, 1.7]


def test_a_run_is_its_median():
    """One long step after an evaluation does not move it."""
    text = "\n".join(line({"train_step_timing": t}) for t in (1.0, 1.1, 9.0, 1.0, 1.1))
    assert summary("run", step_times(text)).startswith("run: 5 steps, median 1.1 s")
    assert summary("empty", []) == "empty: 0 steps"
