"""Marks of parameters, and which slow tests run on a day."""

from zlib import crc32

import pytest


def slow(values):
    """The values as parameters of slow cases."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def runs_on(day, name, parts):
    """Whether a slow test is one of the day's, each being so on one day of as many."""
    return (crc32(name.encode()) + day) % parts == 0
