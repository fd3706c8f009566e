"""How often a writer leaves a checkpoint: the option, which :mod:`pqext.core.checkpoints` carries out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """When checkpoints are written: behind the row group with which so many ``row_groups``, ``bytes`` of the file or
    ``seconds`` are new, whichever comes first.

    Each checkpoint is a footer of all row groups before it. Frequent ones, in the extreme ``checkpoint=1``, therefore
    add bytes and time that grow with the square of the number of row groups: a file of 1,000 row groups would hold
    1,000 footers of 500 row groups each on average. One after every 16 or more, or ``seconds=60``, costs little.
    """

    row_groups: int | None = None
    bytes: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        given = [value for value in (self.row_groups, self.bytes, self.seconds) if value is not None]
        if not given or not all(
            isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 for value in given
        ):
            raise ValueError(
                "a checkpoint needs a positive number of row_groups, bytes or seconds, like checkpoint=16 or "
                "checkpoint=pqext.Checkpoint(seconds=60)"
            )
        for name in ("row_groups", "bytes"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int):
                raise ValueError(
                    f"{name} of a checkpoint must be a whole number, not {value!r}; for a time there is "
                    "pqext.Checkpoint(seconds=2.5)"
                )


def as_checkpoint(choice: int | Checkpoint | None) -> Checkpoint | None:
    """The option as an object. Raises ``ValueError`` for what is none."""
    return choice if choice is None or isinstance(choice, Checkpoint) else Checkpoint(row_groups=choice)
