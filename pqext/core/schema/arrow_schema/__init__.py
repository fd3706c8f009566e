"""The Arrow schema that Arrow's writers store as ``ARROW:schema``, for types that Parquet has no name for.

It is an untrusted hint: the Parquet schema determines the values, the hint only the Arrow type that represents them.
"""
