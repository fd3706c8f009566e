"""Read the footer of a file lazily with its jump table."""

from __future__ import annotations

from collections.abc import Iterator

from isal.isal_zlib import crc32

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.jump_table.jump_table import CRC_BYTES, JUMP_TABLE, ROOT_BYTES, Root
from pqext.core.footer.jump_table.lookup import Lookup, warn_about_jump_table
from pqext.core.footer.structure_lookup import LookupFooter
from pqext.core.format.extension.framing import FRAME_BYTES
from pqext.core.format.extension.structure import HEADERS
from pqext.core.format.metadata import FieldRepetitionType, FileMetaData, SchemaElement
from pqext.core.format.thrift import uleb
from pqext.core.io.source import Source
from pqext.core.schema.lazy_tree import Children, Group, Leaves, Tree, from_elements
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.types import logical


class IndexedFooter(LookupFooter):
    """Footer that is read lazily with a jump table."""

    __slots__ = ()
    lookup: Lookup

    def __init__(self, metadata: FileMetaData, lookup: Lookup) -> None:
        for name, value in (
            ("metadata", metadata),
            ("offset", lookup.offset),
            ("length", lookup.length),
            ("lookup", lookup),
            ("decryptor", None),
            ("known_crc", None),
        ):
            object.__setattr__(self, name, value)

    def schema(self, limits: Limits, path: str | None, *, strict: bool = False) -> Schema:
        """Return the schema. Its columns are resolved on access."""
        return schema_from_table(self.lookup, limits, path)


def open_indexed(source: Source, offset: int, length: int, limits: Limits, tail: Bytes) -> IndexedFooter | None:
    """Open the footer of ``length`` bytes at ``offset`` with its jump table.

    Return None if the table is missing or the footer is signed. Also return None, with a warning, if the table is
    corrupt.

    ``tail`` contains the bytes that were already read from the end of the file.
    """
    try:
        lookup = _find(source, offset, length, limits, tail)
        metadata = None if lookup is None else lookup.metadata()
    except CorruptFileError as error:
        warn_about_jump_table(source.path, error)
        return None
    if lookup is None or metadata is None or metadata.encryption_algorithm is not None:
        return None
    return IndexedFooter(metadata, lookup)


def _find(source: Source, offset: int, length: int, limits: Limits, tail: Bytes) -> Lookup | None:
    end = offset + length - 1
    least = ROOT_BYTES + FRAME_BYTES + 1
    if length <= least:
        return None

    def read(start: int, size: int) -> Bytes:
        held = start - (source.size - len(tail))
        return tail[held : held + size] if held >= 0 else source.read(start, size, is_metadata=True)

    last = read(end + 1 - least, least).tobytes()
    if last[-17:-1] != JUMP_TABLE.bytes or last[-1]:
        return None
    root = Root.decode(last[:ROOT_BYTES])
    if root is None:
        return None
    start = end - FRAME_BYTES - root.size
    opened = start - offset - root.thrift_bytes
    if opened < 0:
        raise CorruptFileError("the jump table is larger than the extension that contains it")
    header = read(offset + root.thrift_bytes, min(9, end - offset - root.thrift_bytes)).tobytes()
    # According to the table, the extension begins where the other fields end. It extends to the end of the footer.
    sizes = [uleb(end - offset - root.thrift_bytes - 4 - n) for n in range(1, 6)]
    if header[:4] not in HEADERS.values() or not any(
        header[4 : 4 + n] == size for n, size in enumerate(sizes, 1) if len(size) == n
    ):
        raise CorruptFileError("the jump table belongs to another footer")
    listed = read(start + root.section_bytes, root.blocks * CRC_BYTES)
    if crc32(listed.data) != root.crc_list:
        raise CorruptFileError("the checksums of the jump table are corrupt")
    crcs = memoryview(listed.tobytes()).cast("I")  # little-endian, like all supported machines
    return Lookup(source, offset, length, root, crcs, start - offset, limits)


def schema_from_table(lookup: Lookup, limits: Limits, path: str | None) -> Schema:
    """Return the schema, like :func:`pqext.core.schema.lazy_tree.from_elements`. Columns are resolved on access.

    If the table does not match the schema, issue a warning and resolve all columns.
    """
    try:
        element = lookup.schema_root()
        if element.num_children != lookup.root.tops:
            raise CorruptFileError("the columns of the jump table do not match the schema")
    except ParquetError as error:
        elements = from_elements(lookup.load_metadata().schema, limits, path)
        warn_about_jump_table(path, error)
        return elements
    columns = TopColumns(lookup, limits, path)
    root = SchemaNode(
        name=element.name,
        repetition=FieldRepetitionType.REQUIRED,
        children=columns,
        physical_type=None,
        type_length=None,
        logical_type=logical.from_element(element),
        field_id=element.field_id,
        path=(),
        max_definition_level=0,
        max_repetition_level=0,
        leaf_start=0,
        leaf_stop=lookup.root.columns,
    )
    return Schema(root, Leaves(lookup.root.columns, root))


class TopColumns(Group):
    """Top-level columns of a schema. Each column is a separate tree."""

    __slots__ = ("_found", "_limits", "_lookup", "_path", "_whole")

    def __init__(self, lookup: Lookup, limits: Limits, path: str | None) -> None:
        super().__init__()
        self._lookup, self._limits, self._path = lookup, limits, path
        self._whole: Schema | None = None
        self._found: dict[str, tuple[int | None, bool]] = {}

    def __len__(self) -> int:
        return self._lookup.root.tops

    def _complete_root(self) -> SchemaNode:
        """Return the root of the complete schema, after checking that the jump table matches the schema."""
        if self._whole is None:
            self._whole = from_elements(self._lookup.load_metadata().schema, self._limits, self._path)
            if len(self._whole.root.children) != len(self) or len(self._whole.leaves) != self._lookup.root.columns:
                raise CorruptFileError("the columns of the jump table do not match the schema", path=self._path)
        return self._whole.root

    def _make(self, position: int) -> SchemaNode:
        if self._whole is not None or self._lookup.is_whole:
            return self._complete_root().children[position]
        try:
            return self._by_table(position)
        except CorruptFileError as error:
            result = self._complete_root().children[position]
            warn_about_jump_table(self._path, error)
            return result

    def _by_table(self, position: int) -> SchemaNode:
        _, _, first, _, _, last = self._lookup.top_column(position)
        elements = [SchemaElement(name="", num_children=1), *self._lookup.column_elements(position)]
        tree = Tree(elements, self._limits, self._path, first)
        if len(tree.leaf_elements) != last - first:
            raise CorruptFileError("the columns of the jump table do not match the schema")
        return tree.node(1, ())

    def __iter__(self) -> Iterator[SchemaNode]:
        self._complete_root()
        return super().__iter__()

    def names(self) -> list[str]:
        """Return the names of all columns."""
        return self._complete_root().child_names

    def search(self, name: str) -> tuple[int | None, bool] | None:
        """Return the position of the first column called ``name``, and whether the name is unique.

        The position is None if the column does not exist. Return None if the complete schema must be searched.
        """
        if name in self._found:
            return self._found[name]
        if self._whole is not None or self._lookup.is_whole or not isinstance(name, str):
            return None
        try:
            candidates = self._lookup.find_columns(name.encode("utf-8", "surrogatepass"))
        except ParquetError as error:
            self._complete_root()
            warn_about_jump_table(self._path, error)
            return None
        if candidates is None:
            return None
        results = [at for at in candidates if self[at].name == name]
        self._found[name] = (results[0], len(results) == 1) if results else (None, True)
        return self._found[name]

    def ancestor_of_leaf(self, leaf: int) -> SchemaNode:
        """Return the top-level column that contains the leaf, or is the leaf."""
        if self._whole is None and not self._lookup.is_whole:
            try:
                return self[self._lookup.ancestor_of_leaf(leaf)]
            except ParquetError as error:
                self._complete_root()
                warn_about_jump_table(self._path, error)
        columns = self._complete_root().children
        assert isinstance(columns, Children)
        return self[columns.child_index(leaf)]
