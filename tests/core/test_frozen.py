"""core/frozen.py: a record is set once."""

import pytest

from colibri.core.frozen import Frozen


class Point(Frozen):
    __slots__ = ("x", "y")
    x: int
    y: object


class Other(Frozen):
    __slots__ = ("x", "y")
    x: int
    y: object


def test_fields_are_given_by_keyword_and_read_by_name() -> None:
    """What a frozen dataclass gives."""
    point = Point(x=1, y=[2])
    assert (point.x, point.y) == (1, [2])
    with pytest.raises(TypeError):
        Point(1, 2)  # type: ignore[call-arg]


def test_a_missing_or_unknown_field_is_named() -> None:
    """No record is half made."""
    with pytest.raises(TypeError, match=r"^Point: missing or unknown fields: y$"):
        Point(x=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Point: missing or unknown fields: z$"):
        Point(x=1, y=2, z=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Point: missing or unknown fields: y, z$"):
        Point(x=1, z=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["x", "y", "z"])
def test_nothing_can_be_set_or_deleted(name: str) -> None:
    """Specification 17.2: frozen when it is made."""
    point = Point(x=1, y=2)
    with pytest.raises(AttributeError, match=f"Point is frozen: cannot set {name}"):
        setattr(point, name, 9)
    with pytest.raises(AttributeError, match=f"Point is frozen: cannot delete {name}"):
        delattr(point, name)
    assert point == Point(x=1, y=2)


def test_it_has_no_room_for_anything_else() -> None:
    """Its slots are all there is."""
    assert not hasattr(Point(x=1, y=2), "__dict__")


def test_equality_is_by_type_and_fields() -> None:
    """Two records that say the same are the same."""
    assert Point(x=1, y=2) == Point(y=2, x=1)
    assert Point(x=1, y=2) != Point(x=1, y=3)
    assert Point(x=1, y=2) != Other(x=1, y=2)
    assert Point(x=1, y=2) != (1, 2)


def test_equal_records_hash_alike() -> None:
    """So that they can be members of a set."""
    assert len({Point(x=1, y=2), Point(x=1, y=2), Point(x=2, y=2)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(x=1, y=[]))


def test_it_shows_its_fields() -> None:
    """For failure messages."""
    assert repr(Point(x=1, y="a")) == "Point(x=1, y='a')"
