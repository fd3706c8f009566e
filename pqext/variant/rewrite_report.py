"""The report of a file that was reshredded or repaired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pqext.core.base.suggestions import excerpt
from pqext.core.base.text import escape_text
from pqext.core.read.damage import Damage, told_rows
from pqext.variant.shredding.schema import ShreddingSchema


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What became of a file: its rows and row groups, how each VARIANT column is shredded, and ``invalid`` rows.

    ``invalid`` counts the values that could not be read and are null now.
    """

    rows: int
    row_groups: int
    schemas: Mapping[str, ShreddingSchema]
    invalid: int
    damage: tuple[Damage, ...] = ()
    """What could not be read and was left out (``on_corrupt="skip"``)."""

    def to_dict(self) -> dict[str, Any]:
        """The report as dictionaries, lists, strings, numbers and None, fit for JSON; rows ``stop`` are exclusive."""
        damage = [
            {
                "row_group": one.row_group, "column": one.column, "start": one.start, "stop": one.stop,
                "reason": one.error.message,
            }
            for one in self.damage
        ]
        return {
            "rows": self.rows, "row_groups": self.row_groups, "invalid": self.invalid,
            "schemas": {column: str(how) for column, how in self.schemas.items()}, "damage": damage,
        }

    def __repr__(self) -> str:
        lines = [f"<pqext.variant.Rewritten: {self.rows:,} rows, {self.row_groups:,} row groups"]
        lines += [
            f"  {escape_text(column)}: {excerpt(escape_text(str(schema)), 0, 500)}"
            for column, schema in self.schemas.items()
        ]
        if self.invalid:
            lines.append(f"  values that could not be read and became null: {self.invalid:,}")
        lines += [f"  left out: {one}" for one in told_damage(self.damage)]
        return "\n".join(lines) + ">"


def told_damage(damage: Sequence[Damage], most: int = 20) -> list[str]:
    """A line for each piece of damage, and for the rest of a long list one."""
    lines = [
        escape_text(
            f"{told_rows(one.start, one.stop)} of row group {one.row_group}"
            f"{'' if one.column is None else ', column ' + one.column}: {one.error.message}"
        )
        for one in damage[:most]
    ]
    return lines + ([f"and {len(damage) - most:,} more"] if len(damage) > most else [])
