"""Fitted tiers and the tables behind them, for people and as plain data."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from placer.base.units import format_seconds
from placer.report.columns import columns

if TYPE_CHECKING:
    from placer.calibrate.hardware import HardwareFit, Reading, TierFit


def as_text(fit: HardwareFit) -> str:
    """A table of tiers, then one of what was measured."""
    tiers: list[tuple[str, ...]] = [
        ("tier", "line rate", "efficiency", "rms error", "latency", "")
    ]
    tiers += [_tier_row(one) for one in fit.tiers]
    head = ("", "test", "GPUs", "nodes", "tier", "long", "bus", "of its line", "")
    rows = [head, *(_row(fit, reading) for reading in fit.readings)]
    return "\n".join([*columns(tiers), "", *columns(rows)])


def as_data(fit: HardwareFit) -> dict[str, Any]:
    """Tiers and measurements as data, with numbers in SI."""
    return {
        "tiers": [
            {
                "tier": one.after.name,
                "bandwidth_bytes_per_s": one.after.bandwidth,
                "efficiency": one.after.efficiency,
                "efficiency_before": one.before.efficiency,
                "rms_error": one.error,
                "tables": len(one.readings),
                "latency_s": one.after.latency,
                "latency_before_s": one.before.latency,
                "latency_from": one.latency_words,
            }
            for one in fit.tiers
        ],
        "tables": [
            {
                "source": reading.table.source,
                "test": reading.table.test,
                "gpus": reading.table.ranks,
                "nodes": reading.nodes,
                "tier": fit.topology.tiers[reading.tier].name,
                "line_rate_bytes_per_s": reading.line,
                "share_of_line_rate": reading.share,
                "long_messages": len(reading.shares),
                "short_message_s": reading.start_s,
                "used": _is_used(fit, reading),
            }
            for reading in fit.readings
        ],
    }


def _tier_row(one: TierFit) -> tuple[str, ...]:
    changed = one.after.efficiency != one.before.efficiency
    was = f" (was {one.before.efficiency:.3g})" if changed else ""
    return (
        one.after.name,
        _rate(one.after.bandwidth),
        f"{one.after.efficiency:.3g}{was}" if one.readings else "not told",
        f"{one.error:.1%}" if one.readings else "",
        format_seconds(one.after.latency),
        one.latency_words,
    )


def _row(fit: HardwareFit, reading: Reading) -> tuple[str, ...]:
    return (
        PurePath(reading.table.source).name,
        reading.table.test,
        f"{reading.table.ranks:,}",
        f"{reading.nodes:,}",
        fit.topology.tiers[reading.tier].name,
        str(len(reading.shares)),
        _rate(reading.share * reading.line),
        f"{reading.share:.3g}",
        _why(fit, reading),
    )


def _why(fit: HardwareFit, reading: Reading) -> str:
    if not reading.shares:
        return "no message of 256 MiB"
    if not reading.tells_rate:
        return "beats a ring: a switch or a tree; use alltoall or sendrecv"
    return "fitted" if _is_used(fit, reading) else "beside tests without a tree"


def _is_used(fit: HardwareFit, reading: Reading) -> bool:
    return any(reading is one for tier in fit.tiers for one in tier.readings)


def _rate(value: float) -> str:
    return f"{value / 1e9:.4g} GB/s"
