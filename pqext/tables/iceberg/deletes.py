"""Read delete files, and find the row numbers that they delete in a data file.

Spec: Apache Iceberg, "Position Delete Files", "Equality Delete Files", "Deletion Vectors"; Puffin,
"deletion-vector-v1".
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.lru import LRU
from pqext.core.io.sources.locations import open_source
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.files.sources import source_name
from pqext.dataset.table.conformance import conform, nulls
from pqext.tables.iceberg.delete_index import PATH_ID, POSITION_ID, DeleteFile

Positions = NDArray[np.int64]
_MAGIC = b"\xd1\xd3\x39\x64"
_CACHED_BYTES = 64 << 20
_NO_ROWS: Positions = np.empty(0, np.int64)


class DeletedRows:
    """Deleted rows of the data files of a snapshot.

    Args:
        files: The delete files that apply to each data file, by the name of its source.
        paths: The location of each data file that has delete files, as the table states it.
        types: The types of all columns that equality delete files compare, by field id.
        values: Values of columns that a data file lacks, by the name of its source and the field id of the column.
    """

    def __init__(
        self, files: Mapping[str, Sequence[DeleteFile]], paths: Mapping[str, str], types: Mapping[int, pa.DataType],
        values: Mapping[str, Mapping[int, pa.Scalar]],
    ) -> None:
        self._arguments = files, paths, types, values
        self._files, self._paths, self._types, self._values = files, paths, types, values
        self._positions: LRU[str, Mapping[str, Positions]] = LRU(_CACHED_BYTES, keeps_last=True)
        self._keys: LRU[str, pa.Table] = LRU(_CACHED_BYTES, keeps_last=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return DeletedRows, self._arguments

    def restrict(self, names: Collection[str]) -> DeletedRows:
        """Return a copy that is restricted to the data files ``names``."""
        files, paths, types, values = self._arguments
        selected = [name for name in names if name in files]
        return DeletedRows(
            {name: files[name] for name in selected}, {name: paths[name] for name in selected}, types,
            {name: values[name] for name in selected},
        )

    @property
    def names(self) -> Collection[str]:
        """Names of the data files to which delete files apply."""
        return self._files.keys()

    def positions(self, source: Any, file: ParquetFile, nodes: Mapping[int, SchemaNode]) -> Positions:
        """Return the numbers of the deleted rows in an open data file, in ascending order.

        ``nodes`` are the columns of the file by field id.

        Raises:
            CorruptFileError: If a delete file is not valid.
            FileNotFoundError: If a delete file does not exist.
        """
        name = source_name(source)
        deletes = self._files.get(name)
        if not deletes:
            return _NO_ROWS
        parts = [self._stored_positions(each, self._paths[name]) for each in deletes if not each.equality_ids]
        compared = sorted((each for each in deletes if each.equality_ids), key=lambda each: each.equality_ids)
        for ids, group in groupby(compared, lambda each: each.equality_ids):
            keys = pa.concat_tables([self._read_keys(each) for each in group])
            parts.append(np.flatnonzero(_is_in(self._read_columns(file, ids, nodes, name), keys)))
        return np.unique(np.concatenate(parts)).astype(np.int64)

    def _stored_positions(self, delete: DeleteFile, path: str) -> Positions:
        if delete.blob_range is not None:
            return read_vector(delete.source, *delete.blob_range)
        name = source_name(delete.source)
        positions = self._positions.get(name)
        if positions is None:
            positions = read_positions(delete.source)
            self._positions.put(name, positions, sum(rows.nbytes for rows in positions.values()))
        return positions.get(path, _NO_ROWS)

    def _read_keys(self, delete: DeleteFile) -> pa.Table:
        """Read the columns that an equality delete file compares."""
        name = source_name(delete.source)
        keys = self._keys.get(name)
        if keys is None:
            with _open(delete.source) as file:
                nodes = nodes_by_id(file)
                missing = [id for id in delete.equality_ids if id not in nodes]
                if missing:
                    raise CorruptFileError(f"an equality delete file lacks the field with id {missing[0]}", path=name)
                keys = self._read_columns(file, delete.equality_ids, nodes, name)
            self._keys.put(name, keys, keys.nbytes)
        return keys

    def _read_columns(
        self, file: ParquetFile, ids: Sequence[int], nodes: Mapping[int, SchemaNode], name: str
    ) -> pa.Table:
        """Read columns by field id, cast to their types in the table. Missing columns contain their default or null."""
        arrays = []
        for id in ids:
            type = self._types[id]
            if id in nodes:
                column = _read_column(file, nodes[id], type)
            else:
                value = self._values.get(name, {}).get(id)
                rows = file.num_rows
                column = pa.chunked_array([nulls(rows, type) if value is None else pa.repeat(value, rows)])
            arrays.append(column)
        return pa.table(arrays, [str(id) for id in ids])


def nodes_by_id(file: ParquetFile) -> dict[int, SchemaNode]:
    """Return the leaves that are not within a list or map, by field id."""
    return {
        leaf.field_id: leaf
        for leaf in file.schema.leaves
        if leaf.field_id is not None and not leaf.max_repetition_level
    }


def _open(source: Any) -> ParquetFile:
    try:
        return ParquetFile(source)
    except FileNotFoundError:
        raise FileNotFoundError(f"the delete file {source_name(source)} of the table does not exist") from None


def _read_column(file: ParquetFile, node: SchemaNode, type: pa.DataType) -> pa.ChunkedArray:
    name = node.dotted_path if file.schema.find(node.dotted_path) is node else node.path[0]
    column = file.read([name])[0]
    chunks = []
    for chunk in column.chunks:
        for step in node.path[1:]:
            chunk = pc.struct_field(chunk, step)
        chunks.append(conform(chunk, type, node.dotted_path))
    return pa.chunked_array(chunks, type)


def _is_in(rows: pa.Table, keys: pa.Table) -> NDArray[np.bool_]:
    """Return a mask of ``rows`` that is true for each row that ``keys`` contains. Null equals null."""
    if len(rows) == 0 or len(keys) == 0:
        return np.zeros(len(rows), np.bool_)
    codes, key_codes = np.zeros(len(rows), np.int64), np.zeros(len(keys), np.int64)
    for column, values in zip(rows.columns, keys.columns, strict=True):
        both = pa.chunked_array([*values.chunks, *column.chunks]).combine_chunks()
        both = both.combine_chunks() if isinstance(both, pa.ChunkedArray) else both
        encoded = both.dictionary_encode("encode")
        numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        pairs = np.concatenate([key_codes, codes]) * (len(encoded.dictionary) + 1) + numbers
        _, numbers = np.unique(pairs, return_inverse=True)
        key_codes, codes = numbers[: len(keys)], numbers[len(keys) :]
    result: NDArray[np.bool_] = np.isin(codes, key_codes)
    return result


def read_positions(source: Any) -> dict[str, Positions]:
    """Read a position delete file. Return the deleted row numbers in ascending order, by data file path.

    Raises ``CorruptFileError`` if a column is missing, or a value is null.
    """
    with _open(source) as file:
        nodes = nodes_by_id(file)
        columns = []
        for id, name, type in ((PATH_ID, "file_path", pa.string()), (POSITION_ID, "pos", pa.int64())):
            node = nodes.get(id) or file.schema.find(name)
            if node is None or not node.is_leaf:
                raise CorruptFileError(f"a position delete file lacks the column {name}", path=file.path)
            try:
                columns.append(_read_column(file, node, type).combine_chunks())
            except ParquetError:
                raise
            except ValueError as error:
                raise CorruptFileError(f"invalid position delete file: {error}", path=file.path) from None
        if any(column.null_count for column in columns):
            raise CorruptFileError("a position delete file contains nulls", path=file.path)
    paths, rows = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns)
    encoded = paths.dictionary_encode()
    codes, numbers = encoded.indices.to_numpy(), rows.to_numpy()
    order = np.lexsort((numbers, codes))
    ends = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    return {
        path: np.unique(numbers[order[start:stop]])
        for path, start, stop in zip(encoded.dictionary.to_pylist(), ends[:-1], ends[1:], strict=True)
    }


def read_vector(source: Any, offset: int, size: int) -> Positions:
    """Read the row numbers in a deletion vector, which is stored at ``offset`` in a Puffin file.

    Raises ``CorruptFileError`` if the range, the checksum or the bitmap is not valid.
    """
    from pyroaring import BitMap  # a dependency of pyiceberg

    name = source_name(source)
    try:
        with open_source(source) as opened:
            if not 0 <= offset <= opened.size - size or size < 20:
                raise CorruptFileError("the byte range of a deletion vector is not valid", path=name, offset=offset)
            blob = bytes(opened.read(offset, size))
    except FileNotFoundError:
        raise FileNotFoundError(f"the deletion vector {name} of the table does not exist") from None
    vector = blob[4:-4]
    if int.from_bytes(blob[:4], "big") != len(vector) or not vector.startswith(_MAGIC):
        raise CorruptFileError("a deletion vector has an invalid length or magic number", path=name, offset=offset)
    if zlib.crc32(vector) != int.from_bytes(blob[-4:], "big"):
        raise CorruptFileError("the checksum of a deletion vector does not match", path=name, offset=offset)
    position, parts = 12, []
    try:
        for _ in range(int.from_bytes(vector[4:12], "little")):
            high = int.from_bytes(vector[position : position + 4], "little")
            bitmap = BitMap.deserialize(vector[position + 4 :])
            position += 4 + len(bitmap.serialize())
            parts.append(np.array(bitmap.to_array(), np.int64) + (high << 32))
    except ValueError as error:
        raise CorruptFileError(f"a deletion vector is not valid: {error}", path=name, offset=offset) from None
    return np.concatenate(parts) if parts else _NO_ROWS
