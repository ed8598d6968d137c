"""The compiled costs; `native/bindings.cpp` is their source."""

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from placer.base.arrays import FloatArray, IntArray

_Ints = npt.NDArray[np.int32]
_Ask = Callable[[IntArray], FloatArray]

class _Kernel:
    def set_machine(
        self,
        children: list[_Ints],
        bandwidth: FloatArray,
        latency: FloatArray,
        detour: FloatArray,
        capacity: list[FloatArray],
        scale_up: int,
        rail: _Ints,
        factor: FloatArray,
        speed: FloatArray,
        site_of_slot: _Ints,
    ) -> None: ...
    def load(self, slots: _Ints) -> None: ...
    def change(self, one: _Ints, other: _Ints) -> float: ...
    def keep(self) -> None: ...
    def undo(self) -> None: ...
    def pressure(self) -> FloatArray: ...
    @property
    def value(self) -> float: ...
    @property
    def slots(self) -> _Ints: ...

class StepTime(_Kernel):
    def add_exchange(
        self,
        start: _Ints,
        groups_of: _Ints,
        first: _Ints,
        member: _Ints,
        weight: _Ints,
        lanes: _Ints,
        members: int,
        share: FloatArray,
        sent: FloatArray,
        sent_inside: float,
    ) -> int: ...
    def add_messages(
        self,
        start: _Ints,
        groups_of: _Ints,
        sender: _Ints,
        receiver: _Ints,
        lanes: _Ints,
        size: float,
        thin: _Ints,
    ) -> int: ...
    def add_rings(
        self,
        start: _Ints,
        groups_of: _Ints,
        first: _Ints,
        member: _Ints,
        weight: _Ints,
        lanes: _Ints,
        members: int,
        buffer: FloatArray,
        moved: float,
        steps_outside: FloatArray,
        steps_inside: FloatArray,
        is_even: bool,
        thin: _Ints,
    ) -> int: ...
    def add_all_reduces(
        self,
        start: _Ints,
        groups_of: _Ints,
        first: _Ints,
        member: _Ints,
        weight: _Ints,
        lanes: _Ints,
        members: int,
        buffer: FloatArray,
        moved: float,
        steps_outside: FloatArray,
        steps_inside: FloatArray,
        is_even: bool,
        thin: _Ints,
        ways: Sequence[bool],
        tree_buffers: FloatArray,
        buffers: FloatArray,
        shares: FloatArray,
        switched: FloatArray,
        heads: int,
    ) -> int: ...
    def add_inside(
        self, start: _Ints, groups_of: _Ints, atom: _Ints, on_site: FloatArray
    ) -> int: ...
    def add_asked(
        self, start: _Ints, groups_of: _Ints, groups: int, sizes: int, ask: _Ask
    ) -> int: ...
    def add_flows(
        self,
        senders: _Ints,
        receivers: _Ints,
        sender: _Ints,
        receiver: _Ints,
        size_bytes: FloatArray,
        pair_share: float,
        fixed_s: float,
    ) -> int: ...
    def add_relay(self, start: _Ints, members: _Ints, size_bytes: float) -> int: ...
    def add_axis(
        self,
        operation: int,
        cells_start: _Ints,
        cells: _Ints,
        groups_start: _Ints,
        groups: _Ints,
        forward: FloatArray,
        forward_start: FloatArray,
        backward: FloatArray,
        backward_start: FloatArray,
        is_hop: bool,
    ) -> None: ...
    def add_peak(self, operation: int, size: int, groups: _Ints) -> int: ...
    def add_kind(
        self, operations: Sequence[int], times: float, hidden: float, by_roles: float
    ) -> None: ...
    def add_instance(self, step: StepTime, steps: float, atoms: _Ints) -> None: ...
    def set_least_roles(self, seconds: float) -> None: ...
    def add_window(
        self,
        weight: float,
        peaks: Sequence[Sequence[int]],
        times: Sequence[Sequence[float]],
        hidden: Sequence[float],
        seen: int,
    ) -> None: ...
    def ask_exposed(self, ask: Callable[[FloatArray], float]) -> None: ...
    def set_pipeline(
        self,
        stages: int,
        group: int,
        repetitions: int,
        overlap: bool,
        head: _Ints,
        middle: _Ints,
        tail: _Ints,
        open: _Ints,
        keys: int,
    ) -> None: ...
    def set_replicas(
        self,
        replicas: int,
        stages: int,
        numbers: FloatArray,
        pace_full: FloatArray,
        start: _Ints,
        cells: _Ints,
        atoms_start: _Ints,
        atoms: _Ints,
        has_speeds: bool,
        block: _Ints,
        block_start: _Ints,
        of_block: _Ints,
    ) -> None: ...
    @property
    def pipeline_s(self) -> float: ...
    @property
    def asks(self) -> bool: ...
    @property
    def exposed_s(self) -> float: ...

class Annealer:
    @overload
    def __init__(
        self,
        step: StepTime,
        width: int,
        families: list[tuple[_Ints, _Ints, _Ints]],
        start: _Ints,
        of_block: _Ints,
        has_experts: bool,
    ) -> None: ...
    @overload
    def __init__(
        self, hops: Hops, width: int, families: list[tuple[_Ints, _Ints, _Ints]]
    ) -> None: ...
    def load(self, slots: _Ints) -> None: ...
    def seed(self, seed: int) -> None: ...
    def tie(self, level: int, sets: list[tuple[_Ints, _Ints, _Ints]]) -> None: ...
    def set_partners(self, start: _Ints, partners: _Ints) -> None: ...
    def set_home(self, slot: _Ints, ranks: _Ints, affected: _Ints) -> None: ...
    @property
    def price(self) -> float: ...
    @price.setter
    def price(self, price: float) -> None: ...
    def usual_change(self, tries: int, hot: float) -> float: ...
    def walk(
        self, moves: int, begin: float, end: float, hot: float, cold: float
    ) -> None: ...
    @property
    def best(self) -> float: ...
    @property
    def best_slots(self) -> _Ints: ...
    @property
    def best_runs(self) -> _Ints: ...
    def set_runs(
        self,
        room: _Ints,
        host: _Ints,
        first: _Ints,
        kind: _Ints,
        kind_of_slot: _Ints,
        node_of_slot: _Ints,
        start: _Ints,
        slots: _Ints,
        sizes: Sequence[int],
    ) -> None: ...
    def add_fence(
        self,
        of_start: _Ints,
        groups_of: _Ints,
        start: _Ints,
        units: _Ints,
        domain: _Ints,
    ) -> None: ...
    def set_pins(self, pin: _Ints, open: _Ints, places: int) -> None: ...
    def add_limit(
        self, columns: int, width: int, of_unit: _Ints, of_place: _Ints, most: _Ints
    ) -> None: ...
    @property
    def keeps_rules(self) -> bool: ...
    def load_runs(self, node: _Ints, length: _Ints) -> None: ...
    @property
    def moves(self) -> list[tuple[str, int, int]]: ...

class Hops(_Kernel):
    def set_edges(
        self,
        distance: FloatArray,
        weights: FloatArray,
        inside: Sequence[int],
        first: _Ints,
        other: _Ints,
        times: _Ints,
        axis: _Ints,
    ) -> None: ...
