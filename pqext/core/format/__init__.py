"""Byte formats of Parquet: metadata structures, Thrift, compression and encodings."""
