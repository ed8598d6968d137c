"""What the scorer wants of its network, and what it makes of the seconds.

The cost of a placement has two halves: the network prices operations, and the scorer
adds them up. A network that notes calls, and says of each what it is to say, shows the
second half without a placement: which groups run what, and how their seconds become
seconds of a stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from placer.base.arrays import BoolArray, FloatArray, IntArray
from placer.cost.links import Cost
from placer.cost.network import Network


@dataclass(frozen=True, eq=False)
class Call:
    """One operation that groups run at once."""

    kind: str  # the method of `Network` that is called
    members: IntArray  # (g, n): ranks; of messages the senders
    size_bytes: float
    algorithm: str = ""  # of an all-reduce
    copies: int = 0  # of an all-to-all
    receivers: IntArray | None = None  # (g, n): of messages

    def seconds(self, network: Network) -> FloatArray:
        """Seconds of each group, or message, on a network; shape (g,) or flat."""
        method = getattr(network, self.kind)
        if self.kind == "send":
            sent = method(self.members, self.receivers, self.size_bytes)
            return np.ravel(sent.seconds)
        more = {"all_reduce": (self.algorithm,), "all_to_all": (self.copies,)}
        found = method(self.members, self.size_bytes, *more.get(self.kind, ()))
        seconds: FloatArray = found.seconds
        return seconds


@dataclass(eq=False)
class CallNetwork(Network):
    """A network that notes calls and gives all groups of one the same seconds."""

    seconds: Mapping[int, float] = field(default_factory=dict)  # of calls, else none
    calls: list[Call] = field(default_factory=list)

    def gather(self, members: IntArray, size_bytes: float) -> Cost:
        """One reduce-scatter or all-gather in every row of ``members``."""
        return self._note(Call("gather", members, size_bytes))

    def all_reduce(
        self, members: IntArray, size_bytes: float, algorithm: str = "auto"
    ) -> Cost:
        """One all-reduce in every row of ``members``."""
        return self._note(Call("all_reduce", members, size_bytes, algorithm))

    def all_to_all(self, members: IntArray, size_bytes: float, copies: int = 0) -> Cost:
        """One all-to-all in every row of ``members``."""
        return self._note(Call("all_to_all", members, size_bytes, copies=copies))

    def send(self, senders: IntArray, receivers: IntArray, size_bytes: float) -> Cost:
        """A message from each sender to its receiver."""
        return self._note(Call("send", senders, size_bytes, receivers=receivers))

    def pass_on(self, members: IntArray, size_bytes: float) -> Cost:
        """A message from each member of a row to the next one, around it."""
        return self._note(Call("pass_on", members, size_bytes))

    def flows(
        self,
        senders: IntArray,
        receivers: IntArray,
        size_bytes: FloatArray,
        pair_share: float = 1.0,
    ) -> Cost:
        """Messages of any sizes between different ranks, all at once."""
        del size_bytes, pair_share
        return self._note(Call("flows", senders, 0.0, receivers=receivers))

    def stays_inside(self, members: IntArray) -> BoolArray:
        """Yes, for each row of ``members``."""
        return np.ones(len(members), dtype=bool)

    def speed(self, members: IntArray) -> FloatArray:
        """The usual speed, for each row of ``members``."""
        return np.ones(len(members))

    def _note(self, call: Call) -> Cost:
        seconds = self.seconds.get(len(self.calls), 0.0)
        self.calls.append(call)
        shape = len(call.members) if call.receivers is None else call.members.shape
        return Cost(np.full(shape, seconds))
