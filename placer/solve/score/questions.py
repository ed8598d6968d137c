"""What the scorer asks of its network, and what it makes of the answers.

The cost of a placement has two halves: the network prices operations, and the scorer
adds them up. A network that notes what it is asked, and answers as it is told, shows
the second half without a placement: which groups run what, and how their seconds become
seconds of a stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.communicators import CollectiveCost
from placer.cost.exchange import ExchangeCost
from placer.cost.links import LinkLoad
from placer.cost.network import hop_by_hop

if TYPE_CHECKING:
    from placer.cost.network import Network


@dataclass(frozen=True, eq=False)
class Question:
    """One operation that groups run at once.

    Attributes
    ----------
    kind : str
        The method of `Network` that is asked.
    members : ndarray, shape (g, n)
        Ranks; of messages the senders.
    size_bytes : float or ndarray
    algorithm : str
        Of an all-reduce.
    copies : int
        Of an all-to-all.
    receivers : ndarray, shape (g, n), optional
        Of messages.
    """

    kind: str
    members: IntArray
    size_bytes: float
    algorithm: str = ""
    copies: int = 0
    receivers: IntArray | None = None

    def ask(self, network: Network) -> FloatArray:
        """Seconds of each group, or message, on a network; shape (g,) or flat."""
        if self.kind == "gather":
            found = network.gather(self.members, self.size_bytes)
        elif self.kind == "all_reduce":
            found = network.all_reduce(self.members, self.size_bytes, self.algorithm)
        elif self.kind == "all_to_all":
            return network.all_to_all(
                self.members, self.size_bytes, self.copies
            ).seconds
        elif self.kind == "pass_on":
            return network.pass_on(self.members, self.size_bytes).seconds
        else:
            assert self.receivers is not None  # noqa: S101
            sent = network.send(self.members, self.receivers, self.size_bytes)
            return np.ravel(sent.seconds)
        return found.seconds


LEAST = 1e-9  # s: no operation takes less, or it does not matter
SHORT = 1e-3  # s: lines are drawn between times as short, at the least
ROUNDING, STEEP = 1e-12, 1e-9  # of a value, and of a slope
Answer = Callable[[int], float]


@dataclass(eq=False)
class ToldNetwork:
    """A network that notes questions and gives all groups of one the same seconds.

    Attributes
    ----------
    answer : callable
        Seconds of question number ``i``.
    inside : bool
        Whether groups are said to lie in one scale-up domain each.
    asked : list of Question
    """

    answer: Answer = field(default=lambda _: 0.0)
    inside: bool = True
    asked: list[Question] = field(default_factory=list)

    def gather(self, members: IntArray, size_bytes: float) -> CollectiveCost:
        """One reduce-scatter or all-gather in every row of ``members``."""
        return self._collective(Question("gather", members, size_bytes))

    def all_reduce(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> CollectiveCost:
        """One all-reduce in every row of ``members``."""
        return self._collective(Question("all_reduce", members, size_bytes, algorithm))

    def all_to_all(
        self, members: IntArray, size_bytes: float, copies: int = 0
    ) -> ExchangeCost:
        """One all-to-all in every row of ``members``."""
        question = Question("all_to_all", members, size_bytes, copies=copies)
        return self._exchange(question, (len(members),))

    def send(
        self, senders: IntArray, receivers: IntArray, size_bytes: float
    ) -> ExchangeCost:
        """A message from each sender to its receiver."""
        question = Question("send", senders, size_bytes, receivers=receivers)
        return self._exchange(question, senders.shape)

    def pass_on(self, members: IntArray, size_bytes: float) -> ExchangeCost:
        """A message from each member of a row to the next one, around it."""
        question = Question("pass_on", members, size_bytes)
        return self._exchange(question, (len(members),))

    def relay(self, members: IntArray, size_bytes: float) -> list[ExchangeCost]:
        """Messages along each row of ``members``, the cost of each hop in turn."""
        return hop_by_hop(self, members, size_bytes)

    def flows(
        self,
        senders: IntArray,
        receivers: IntArray,
        size_bytes: FloatArray,
        pair_share: float = 1.0,
    ) -> ExchangeCost:
        """Messages of any sizes between different ranks, all at once."""
        del size_bytes, pair_share
        question = Question("flows", senders, 0.0, receivers=receivers)
        return self._exchange(question, senders.shape)

    def stays_inside(self, members: IntArray) -> BoolArray:
        """As told, for each row of ``members``."""
        return np.full(len(members), self.inside)

    def speed(self, members: IntArray) -> FloatArray:
        """The usual speed, for each row of ``members``."""
        return np.ones(len(members))

    def _note(self, question: Question, shape: tuple[int, ...]) -> FloatArray:
        self.asked.append(question)
        return np.full(shape, self.answer(len(self.asked) - 1))

    def _collective(self, question: Question) -> CollectiveCost:
        seconds = self._note(question, (len(question.members),))
        names = np.full(len(seconds), "ring")
        return CollectiveCost(names, seconds, seconds, np.zeros(1), _NOTHING)

    def _exchange(self, question: Question, shape: tuple[int, ...]) -> ExchangeCost:
        return ExchangeCost(self._note(question, shape), np.zeros(1), _NOTHING)


_NOTHING = LinkLoad([], [])


@dataclass(frozen=True, eq=False)
class Lines:
    """The largest of some lines: a convex function of seconds.

    Attributes
    ----------
    slope, start : ndarray, shape (k,)
    """

    slope: FloatArray
    start: FloatArray


def lines_of(function: Callable[[float], float], most: float = 1024.0) -> Lines:
    """A convex piecewise linear function, found from its values between 0 and `most`.

    Two lines meet where neither is below the function, unless others lie between.
    """
    lowest = _line(function, 0.0, LEAST)
    highest = _line(function, most / 2, most)
    while most > SHORT:  # near to where it begins, which rounds least
        nearer = _line(function, most / 4, most / 2)
        if abs(nearer[0] - highest[0]) > 1e-9 * abs(highest[0]):
            break
        highest, most = nearer, most / 2
    found = {highest, *_between(function, lowest, highest, 16)}
    if not _is_same(lowest, highest):
        found.add(lowest)
    return Lines(*np.array(sorted(found)).T)


def _line(
    function: Callable[[float], float], one: float, other: float
) -> tuple[float, float]:
    """Slope and start of the line through two of the values."""
    slope = (function(other) - function(one)) / (other - one)
    return slope, function(one) - slope * one


def _is_same(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two lines are as steep, but for rounding."""
    return abs(one[0] - other[0]) <= STEEP * abs(other[0])


def _between(
    function: Callable[[float], float],
    low: tuple[float, float],
    high: tuple[float, float],
    left: int,
) -> list[tuple[float, float]]:
    """The lines of a function between two of its lines."""
    if _is_same(low, high) or not left:
        return []
    at = (low[1] - high[1]) / (high[0] - low[0])
    value = low[1] + low[0] * at
    if at <= 0 or function(at) <= value + ROUNDING * abs(high[0]) * at:
        return []
    middle = _line(function, at * (1 - 1e-6), at * (1 + 1e-6))
    below = _between(function, low, middle, left - 1)
    return [*below, middle, *_between(function, middle, high, left - 1)]
