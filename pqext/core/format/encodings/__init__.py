"""The encodings of values, one module each, by their number in the format.

A decoder offers ``fixed`` (values of a fixed width, as dense bytes) and ``byte_arrays`` (slots appended to a
builder), and ``encode`` for the values of a page if the encoding is written. To add an encoding, write its module
and enter it in ``table``.
"""
