"""Frozen values: `class Point(Record)` is what `@dataclass(frozen=True) class Point` is, and cheap to define.

A dataclass writes and compiles the source of six methods, which takes half a millisecond at every start. The 270
classes that `predict` needs would take a fifth of its run time. A record shares its methods with all others.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, field
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, dataclass_transform

__all__ = ["Record", "field", "replace"]

_set = object.__setattr__


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """Annotated names are fields, as in a dataclass: also with defaults and `field(compare=False, repr=False)`.

    Equality, hash, repr and matching are those of a dataclass, and pickling works. There are no default factories.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}
    _compared: ClassVar[tuple[str, ...]] = ()
    _shown: ClassVar[tuple[str, ...]] = ()
    _key: ClassVar[staticmethod[[Any], object]] = staticmethod(lambda record: ())

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = [n for n, kind in cls.__annotations__.items() if "ClassVar" not in str(kind)]
        given = {n: cls.__dict__[n] for n in own if n in cls.__dict__}
        options = {n: v for n, v in given.items() if isinstance(v, Field)}
        defaults = given | {n: f.default for n, f in options.items()}
        for name, option in options.items():
            if option.default_factory is not MISSING:
                raise TypeError(f"{cls.__name__}.{name}: a record has no default factories")
            delattr(cls, name)
        cls._defaults = cls._defaults | {n: v for n, v in defaults.items() if v is not MISSING}
        cls.__match_args__ += tuple(own)  # type: ignore[misc]
        cls._compared += tuple(n for n in own if n not in options or options[n].compare)
        cls._shown += tuple(n for n in own if n not in options or options[n].repr)
        if cls._compared:
            cls._key = staticmethod(attrgetter(*cls._compared))

    def __init__(self, *values: Any, **named: Any) -> None:
        names = self.__match_args__
        if named or len(values) != len(names):
            values = tuple(self._all(values, named))
        for name, value in zip(names, values, strict=False):
            _set(self, name, value)

    def _all(self, values: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """The values of all fields in order. Raises TypeError as a function with these parameters would."""
        names = self.__match_args__
        given = dict(zip(names, values, strict=False))
        state = self._defaults | given | named
        missing = [n for n in names if n not in state]
        if missing or len(state) > len(names) or len(values) > len(names) or not given.keys().isdisjoint(named):
            call = f"{len(values)} values and {', '.join(named) or 'no names'}"
            raise TypeError(f"{type(self).__name__}({', '.join(names)}) does not take {call}")
        return [state[n] for n in names]

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._key(self) == self._key(other)

    def __hash__(self) -> int:
        return hash(self._key(self))

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in self._shown)})"


R = TypeVar("R", bound=Record)


def replace(record: R, **changes: Any) -> R:
    """A copy with other values in some fields, as `dataclasses.replace`. Raises TypeError for an unknown name."""
    return type(record)(**{n: getattr(record, n) for n in record.__match_args__} | changes)
