"""The bytes of the format: metadata structures, Thrift, compression and encodings."""
