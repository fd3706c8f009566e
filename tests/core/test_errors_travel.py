"""Errors go from process to process as they are."""

from __future__ import annotations

import pickle

import pytest

from pqext.core.base.errors import GeometryError, ParquetError, SourceError, UnsupportedError, VariantError


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedError("no", feature="compressed JSON lines", path="a.gz"),
        VariantError("bad", rule="r", row=3, offset=5),
        GeometryError("bad", row=1),
        SourceError("gone", path="s3://b/k"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_pickled_error_preserves_class_message_and_location(error: ParquetError) -> None:
    error.locate(path="file.parquet")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), vars(again)) == (str(error), vars(error))
