"""Report of a file that was reshredded or repaired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pqext.core.base.suggestions import excerpt
from pqext.core.base.text import escape_text, with_noun
from pqext.core.read.damage import Damage, format_rows
from pqext.variant.shredding.schema import ShreddingSchema


class LossError(ValueError):
    """Replacing a file would lose data. ``lost`` describes the data."""

    def __init__(self, loss: str, advice: str = "overwrite=True allows it") -> None:
        self.lost = loss
        message = f"{loss} cannot be read and would be lost, so the file is not replaced; write to another file"
        super().__init__(f"{message}; {advice}")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Result of a rewrite: the rows and row groups written, the shredding of each VARIANT column, and lost values.

    ``invalid`` is the number of values that could not be read and are now null.
    """

    rows: int
    row_groups: int
    schemas: Mapping[str, ShreddingSchema]
    invalid: int
    damage: tuple[Damage, ...] = ()
    """Corrupt ranges whose rows were skipped (``on_corrupt="skip"``)."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-compatible dictionaries, lists, strings, numbers and None.

        Row ranges exclude ``stop``.
        """
        damage = [
            {
                "row_group": item.row_group, "column": item.column, "start": item.start, "stop": item.stop,
                "reason": item.error.message,
            }
            for item in self.damage
        ]
        return {
            "rows": self.rows, "row_groups": self.row_groups, "invalid": self.invalid,
            "schemas": {column: str(how) for column, how in self.schemas.items()}, "damage": damage,
        }

    def __repr__(self) -> str:
        lines = [f"<pqext.variant.Rewritten: {with_noun(self.rows, 'row')}, {with_noun(self.row_groups, 'row group')}"]
        lines += [
            f"  {escape_text(column)}: {excerpt(escape_text(str(schema)), 0, 500)}"
            for column, schema in self.schemas.items()
        ]
        if self.invalid:
            lines.append(f"  values that could not be read and became null: {self.invalid:,}")
        lines += [f"  skipped: {line}" for line in format_damage(self.damage)]
        return "\n".join(lines) + ">"


def format_damage(damage: Sequence[Damage], limit: int = 20) -> list[str]:
    """Describe each damaged range on one line. A long list is truncated and summarised."""
    lines = [
        escape_text(
            f"{format_rows(item.start, item.stop)} of row group {item.row_group}"
            f"{'' if item.column is None else ', column ' + item.column}: {item.error.message}"
        )
        for item in damage[:limit]
    ]
    return lines + ([f"and {len(damage) - limit:,} more"] if len(damage) > limit else [])
