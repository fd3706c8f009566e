"""Encodings of values. Each encoding has a module, and a table selects encodings by their numbers in the format.

A module defines ``decode_fixed_width`` (values of a fixed width, as dense bytes) and ``decode_byte_arrays`` (slots
appended to a builder). If pqext writes the encoding, the module also defines ``encode`` for the values of a page. To
add an encoding, write its module and enter it in ``table``.
"""
