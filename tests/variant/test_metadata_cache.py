"""Decoded metadata is shared among values, and little of it is kept."""

from __future__ import annotations

from pqext.variant.binary_value import _SHORT, decode_metadata, encode_metadata


def test_shared_metadata_is_decoded_once() -> None:
    for names in (["a", "b"], ["x" * _SHORT]):
        data = encode_metadata(names)
        assert decode_metadata(data) is decode_metadata(bytes(bytearray(data)))
        assert decode_metadata(data).names == tuple(names)


def test_long_metadata_is_not_cached() -> None:
    long = [encode_metadata([str(number) * _SHORT]) for number in range(4)]
    first = decode_metadata(long[0])
    for data in long[1:]:
        decode_metadata(data)
    assert decode_metadata(long[0]) is not first
