"""The columns of a scan that dotted names stand for, once the names of its columns are known."""

from __future__ import annotations

from collections.abc import Container
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast

import pyarrow as pa

from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.expressions.dotted_names import dotted_columns, exact
from pqext.dataset.files.file_set import FileSet
from pqext.dataset.planning.projection import Computed

T = TypeVar("T")


@dataclass
class ExactNames:
    """Turns dotted names into columns: of folders, and of files by the ``rule`` that unifies these."""

    files: FileSet
    folders: tuple[str, ...]
    rule: Literal["union"] | pa.Schema | None
    _names: Container[str] | None = None
    _known: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """Conditions and values with what they become, by the ids of the former."""

    def of(self, node: T) -> T:
        """A condition or a value with the columns whose names are exactly its dotted names."""
        known = self._known.get(id(node))
        if known is None:
            made = exact(node, self.names) if dotted_columns(node) else node
            known = self._known[id(node)] = node, made
        return cast(T, known[1])

    def of_folders(self, node: T) -> T:
        """As :meth:`of`, with no file opened for it unless folders have a column that may be meant."""
        made = exact(node, self.folders)
        is_unclear = any(column.path[0] in self.folders for column in dotted_columns(made))
        return self.of(node) if is_unclear else made

    def of_column(self, column: str | Computed) -> str | Computed:
        """A column of the result; a name is looked up exactly first wherever it is looked up."""
        return replace(column, field=self.of(column.field)) if isinstance(column, Computed) else column

    def learn(self, file: ParquetFile) -> None:
        """Use the names of a file, with which all others agree unless a rule states the columns."""
        if self._names is None and self.rule is None:
            self._names = _FileNames(self.folders, file.schema.root)

    @property
    def names(self) -> Container[str]:
        """The names of all columns."""
        if self._names is None:
            self._names = self._of_files()
        return self._names

    def _of_files(self) -> Container[str]:
        if isinstance(self.rule, pa.Schema):
            return frozenset((*self.folders, *self.rule.names))
        if self.rule == "union":
            return frozenset((*self.folders, *(name for _, schema in self.files.schemas for name in schema.names)))
        with closing(self.files.opened(range(len(self.files.sources)), is_learning=True)) as files:
            for _, file in files:
                return _FileNames(self.folders, file.schema.root)
        return self.folders


@dataclass(frozen=True)
class _FileNames:
    """Names of folders and of the columns of a file, of which a wide schema is asked for single names."""

    folders: tuple[str, ...]
    root: SchemaNode

    def __contains__(self, name: object) -> bool:
        return name in self.folders or name in self.root
