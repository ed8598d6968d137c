"""Steps of MLPerf logs: which lines count."""

import json

from validation.mlperf_log import step_times


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
