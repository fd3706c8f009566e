"""The Arrow schema that Arrow's writers note in ``ARROW:schema``, for the types that Parquet has no name for.

``text`` is the stored form, ``written`` what the writer puts there, ``hints`` lays it over the shapes of a file,
``types`` and ``arrays`` apply it to one field. It is a hint from strangers: the Parquet schema decides what the values
are, the hint only in which Arrow type of the same values they are shown.
"""
