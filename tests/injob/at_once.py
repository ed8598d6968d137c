"""Processes of a job as threads: each with a host of its own, and words for all."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.injob.stand_ins import line

_HERE = threading.local()


def on_hosts(patch, module, domains):
    """Host nK is in NVLink domain K mod ``domains``, and tells it."""

    def probe():
        number = int(_HERE.host[1:])
        return json.loads(line(_HERE.host, nvlink_domain=f"u.{number % domains}"))

    patch.setattr(module, "node_name", lambda: _HERE.host)
    patch.setattr(module, "probe", probe)


def at_once(hosts, work):
    """What each process returns, or the error that it ended with."""

    def one(rank):
        _HERE.host = hosts[rank]
        try:
            return work(rank)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(hosts)) as pool:
        return list(pool.map(one, range(len(hosts))))


class Words:
    """Everybody says something, then everybody knows it."""

    def __init__(self, count):
        self._barrier = threading.Barrier(count, timeout=60)
        self._said = [None] * count

    def gather(self, rank, said):
        self._said[rank] = said
        self._barrier.wait()
        found = [*self._said]
        self._barrier.wait()
        return found


class Store:
    """As much of torch's store as agreeing takes; requests are counted."""

    def __init__(self):
        self._kept = {}
        self._changed = threading.Condition()
        self.requests = 0

    def set(self, key, value):
        self.compare_set(key, None, value)

    def get(self, key):
        return self.multi_get([key])[0]

    def multi_get(self, keys):
        self.wait(keys, None)
        return [self._kept[key] for key in keys]

    def check(self, keys):
        self.requests += 1
        return {*keys} <= self._kept.keys()

    def wait(self, keys, limit):
        seconds = 60 if limit is None else limit.total_seconds()
        with self._changed:
            if not self._changed.wait_for(lambda: self.check(keys), seconds):
                raise RuntimeError("wait timeout")

    def compare_set(self, key, expected, value):
        """Set a value where there is what is expected, or whatever there is."""
        with self._changed:
            self.requests += 1
            if expected is None or self._kept.get(key, b"").decode() == expected:
                self._kept[key] = value.encode()
                self._changed.notify_all()
            return self._kept[key]

    def add(self, key, number):
        with self._changed:
            count = int(self._kept.get(key, b"0")) + number
            self.set(key, f"{count}")
            return count
