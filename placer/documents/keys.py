"""Keys of a file, each said once, beside the attribute that it fills.

    dispatch: str = key(one_of(DISPATCHES), "how tokens reach their experts", "flat")

Reader, writer, digest and JSON Schema are made from them (`placer.documents.records`);
`placer.documents.facts` has the kinds of files that placer writes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, get_type_hints, is_typeddict

from placer.base import units

if TYPE_CHECKING:
    from placer.documents.section import Section
    from placer.documents.value import Value


REQUIRED: Any = object()  # the default of a key that files must have


@dataclass(frozen=True)
class Kind:
    """What a value may be."""

    schema: Callable[[], dict[str, Any]]  # its JSON Schema
    # The value read, or the second argument where it is wrong.
    read: Callable[[Value, Any], Any]
    stand_in: Any = None  # for a wrong value of a key without a default
    special: bool = False  # code of its own reads it


@dataclass(frozen=True)
class Key:
    """A key of a mapping; one of a class fills no attribute and has its own name."""

    kind: Kind
    says: str  # what it means
    default: Any = REQUIRED  # where a file lacks the key; `REQUIRED` requires it
    # The default, from the attributes before it.
    implied: Callable[[Mapping[str, Any]], Any] | None = None
    # What its absence means, where the default does not say that.
    absent: str | None = None
    newer: bool = False  # older files lack it: at its default it is not digested
    or_null: bool = False  # null is as good as absent, as in all that programs write
    # Whether it is not written at its default; None: if it is newer.
    unsaid: bool | None = None
    called: str = ""  # in files
    attribute: str = ""  # of the dataclass; empty where it fills none
    # Keys stand in the order in which they are made.
    rank: int = field(default_factory=count().__next__, compare=False)

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the name that a class gives it."""
        if not self.called:
            object.__setattr__(self, "called", name)

    @property
    def required(self) -> bool:
        """Whether files must have it."""
        return self.default is REQUIRED and self.absent is None

    @property
    def goes_unsaid(self) -> bool:
        """Whether it is not written at its default."""
        return self.newer if self.unsaid is None else self.unsaid

    @property
    def usual(self) -> Any:
        """What a new object has without it."""
        return self.default() if callable(self.default) else self.default

    def take(self, section: Section, usual: Any = REQUIRED) -> Any:
        """Its value in a section; ``usual`` replaces the default."""
        default = self.usual if usual is REQUIRED else usual
        value = section.get(self.called, required=self.required and usual is REQUIRED)
        stand_in = self.kind.stand_in if default in (None, REQUIRED) else default
        if value is not None and not (self.or_null and value.content is None):
            return self.kind.read(value, stand_in)
        return stand_in if default is REQUIRED else default


def key(
    kind: Kind, says: str, default: Any = REQUIRED, *, compare: bool = True, **said: Any
) -> Any:
    """A field of a dataclass that a key of a file fills; ``said`` is of `Key`."""
    metadata = {"key": Key(kind, says, default, **said)}
    more: dict[str, Any] = {"compare": compare, "metadata": metadata}
    if default is not REQUIRED:
        more["default_factory" if callable(default) else "default"] = default
    return field(**more)


_KEYS: dict[type, tuple[Key, ...]] = {}


def keys_of(record: type) -> tuple[Key, ...]:
    """The keys that fill a dataclass, and those that its class holds beside them.

    Those of a typed dict annotate its entries. In a mapping that ``is_open``, null is
    as good as absent; a class where ``all_newer``, or ``all_unsaid``, says so once of
    all its keys.
    """
    if record not in _KEYS:
        found = [*_annotating(record)]
        for each in fields(record) if is_dataclass(record) else ():
            own = each.metadata.get("key")
            if own is not None:
                called = own.called or each.name
                found.append(replace(own, called=called, attribute=each.name))
        held = [each for base in record.__mro__ for each in vars(base).values()]
        found += [each for each in held if isinstance(each, Key)]
        if is_open(record):
            found = [replace(each, or_null=not each.required) for each in found]
        if getattr(record, "all_newer", False):
            found = [replace(each, newer=True) for each in found]
        if getattr(record, "all_unsaid", False):
            found = [replace(each, unsaid=True) for each in found]
        _KEYS[record] = tuple(sorted(found, key=lambda each: each.rank))
    return _KEYS[record]


def is_open(record: type) -> bool:
    """Whether a mapping of this class may have keys that nobody knows."""
    return is_typeddict(record) or getattr(record, "is_open", False)


def _annotating(record: type) -> Iterator[Key]:
    hints = get_type_hints(record, include_extras=True) if is_typeddict(record) else {}
    for name, hint in hints.items():
        for said in getattr(hint, "__metadata__", ()):
            yield replace(said, called=name, attribute=name)


def integer(minimum: int = 1, maximum: int = 10**9) -> Kind:
    """A decimal integer in a range."""
    return Kind(
        lambda: {"type": "integer", "minimum": minimum, "maximum": maximum},
        lambda value, usual: value.integer(usual, minimum=minimum, maximum=maximum),
        minimum,
    )


def number(minimum: float = 0.0, maximum: float = 1e18) -> Kind:
    """A finite number in a range."""
    return Kind(
        lambda: {"type": "number", "minimum": minimum, "maximum": maximum},
        lambda value, usual: value.number(usual, minimum=minimum, maximum=maximum),
        minimum,
    )


def matching(pattern: str) -> Kind:
    """A text of a form that its own code asks for, with words of its own."""
    return replace(TEXT, schema=lambda: {**TEXT.schema(), "pattern": f"^{pattern}$"})


def one_of(options: Collection[str]) -> Kind:
    """A text that is one of some."""
    return Kind(
        lambda: {"enum": [*options]},
        lambda value, usual: value.choice(options, usual),
        next(iter(options)),
    )


def _quantity(name: str, parse: Callable[[str], float]) -> Kind:
    """A number that may have a unit."""
    return Kind(
        lambda: {"$ref": f"#/$defs/{name}"},
        lambda value, usual: value.quantity(parse, usual),
        1.0,
    )


BANDWIDTH = _quantity("bandwidth", units.parse_bandwidth)
TIME = _quantity("time", units.parse_time)
DURATION = _quantity("duration", units.parse_duration)
SIZE = _quantity("size", units.parse_bytes)
POWER = _quantity("power", units.parse_power)
COUNT = _quantity("count", units.parse_count)
BOOLEAN = Kind(
    lambda: {"type": "boolean"},
    lambda value, usual: value.boolean(usual),
    False,
)
TEXT = Kind(
    lambda: {"$ref": "#/$defs/text"}, lambda value, usual: value.text(usual), ""
)


def above_zero(kind: Kind) -> Kind:
    """A number or quantity that cannot be 0."""
    return also(kind, bool, "must be above 0", exclusiveMinimum=0)


def also(
    kind: Kind, fits: Callable[[Any], object], message: str, hint: str = "", **more: Any
) -> Kind:
    """A kind whose values must pass a test besides; ``more`` is for its schema."""

    def read(value: Value, usual: Any) -> Any:
        found = kind.read(value, REQUIRED)
        if found is REQUIRED:
            return usual
        if not fits(found):
            value.problem(message, hint)
        return found

    return replace(kind, schema=lambda: {**kind.schema(), **more}, read=read)


def list_of(kind: Kind) -> Kind:
    """A list of values of one kind, as a tuple."""
    return Kind(
        lambda: {"type": "array", "items": kind.schema()},
        lambda value, _: tuple(kind.read(v, kind.stand_in) for v in value.items()),
        (),
    )


def map_of(kind: Kind) -> Kind:
    """A mapping of names that the file chooses to values of one kind."""

    def read(value: Value, _: Any) -> dict[str, Any]:
        entries = value.section().entries()
        return {name: kind.read(each, kind.stand_in) for name, each in entries}

    return Kind(
        lambda: {"type": "object", "additionalProperties": kind.schema()},
        read,
        {},
    )


def special(schema: Callable[[], dict[str, Any]]) -> Kind:
    """A value that code of its own reads."""
    return Kind(schema, lambda value, _: value.content, special=True)
