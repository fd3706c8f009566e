"""Frozen dataclasses with quick constructors are the dataclasses that they were."""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import pytest

from pqext.core.lean import lean


@dataclass(frozen=True)
class Plain:
    a: int
    b: str = "b"


@dataclass(frozen=True, slots=True)
class Slotted:
    a: int
    b: str = "b"
    c: str = field(init=False, default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", self.b * 2)


def twice(kind: Any) -> tuple[Any, Any]:
    """The dataclass and one like it with a lean constructor."""
    return kind, lean(type(kind)(kind.__name__, (kind,), {"__slots__": ()} if "__slots__" in vars(kind) else {}))


@pytest.mark.parametrize("kind", [Plain, Slotted])
def test_a_lean_constructor_makes_what_the_ordinary_one_makes(kind: Any) -> None:
    ordinary, other = twice(kind)
    for arguments, named in (((1,), {}), ((1, "x"), {}), ((), {"b": "y", "a": 2})):
        made, expected = other(*arguments, **named), ordinary(*arguments, **named)
        assert repr(made) == repr(expected)
        assert hash(made) == hash(expected)
        assert made == other(*arguments, **named)
        assert replace(made, a=3) == other(3, made.b)
    assert list(inspect.signature(other).parameters) == list(inspect.signature(ordinary).parameters)


@pytest.mark.parametrize("kind", [Plain, Slotted])
def test_what_a_lean_constructor_has_made_is_frozen(kind: Any) -> None:
    made = twice(kind)[1](1)
    with pytest.raises(FrozenInstanceError):
        made.a = 2


@pytest.mark.parametrize("kind", [Plain, Slotted])
def test_a_lean_constructor_refuses_arguments_that_are_missing_or_unknown(kind: Any) -> None:
    made = twice(kind)[1]
    for arguments, named in (((), {}), ((1, "b", "c", "d"), {}), ((1,), {"z": 1})):
        with pytest.raises(TypeError, match="argument"):
            made(*arguments, **named)


def test_fields_inherited_from_another_dataclass_are_taken_too() -> None:
    @lean
    @dataclass(frozen=True)
    class Longer(Plain):
        c: int = 4

    assert Longer(1, c=5) == Longer(a=1, b="b", c=5)


def test_default_factories_are_refused_where_the_class_is_declared() -> None:
    @dataclass(frozen=True)
    class Made:
        a: list[int] = field(default_factory=list)

    with pytest.raises(TypeError, match=r"Made\.a"):
        lean(Made)
