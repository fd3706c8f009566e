"""Arrow schema that Arrow's writers store as ``ARROW:schema``, for types without a Parquet equivalent.

It is an untrusted hint. The Parquet schema determines the values; the hint determines only the Arrow type for them.
"""
