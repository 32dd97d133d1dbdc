"""Immutable records without the 20 ms that importing dataclasses takes.

A subclass lists its fields as annotations and as `__slots__`; they are passed by keyword.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self, dataclass_transform
else:

    def dataclass_transform(**_options: object) -> object:
        """A stand-in for typing's decorator, which only type checkers use."""
        return lambda cls: cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Frozen:
    """Fields are set once, by keyword; they decide equality and repr."""

    __slots__: tuple[str, ...] = ()

    def __init__(self, **fields: object) -> None:
        if fields.keys() != set(self.__slots__):
            wrong = ", ".join(sorted(fields.keys() ^ set(self.__slots__)))
            raise TypeError(f"{type(self).__name__}: missing or unknown fields: {wrong}")
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: cannot delete {name}")

    def but(self, **changes: object) -> "Self":
        """A copy with some other values."""
        return type(self)(**dict(zip(self.__slots__, self._fields(), strict=True)) | changes)

    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Frozen)
            and type(self) is type(other)
            and (self._fields() == other._fields())
        )

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({shown})"
