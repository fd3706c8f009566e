"""Z85, the text form of bytes in statistics of Delta tables: five characters for four bytes (ZeroMQ RFC 32)."""

from __future__ import annotations

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {character: value for value, character in enumerate(ALPHABET)}


def encode(data: bytes) -> str:
    """``data`` as text; zeros fill up a length that is no multiple of four, as Delta's writers do.

    >>> encode(bytes.fromhex("864FD26FB559F75B"))
    'HelloWorld'
    """
    padded = data + bytes(-len(data) % 4)
    made = []
    for at in range(0, len(padded), 4):
        number = int.from_bytes(padded[at : at + 4], "big")
        made += [ALPHABET[number // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(made)


def decode(text: str) -> bytes:
    """The bytes that ``text`` stands for, with the zeros that fill them up.

    Raises ``ValueError`` for text whose length is no multiple of five, and for characters and groups that Z85 does not
    have.
    """
    if len(text) % 5:
        raise ValueError(f"{len(text)} characters are no Z85: five stand for four bytes")
    made = bytearray()
    for at in range(0, len(text), 5):
        number = 0
        for character in text[at : at + 5]:
            if character not in _VALUES:
                raise ValueError(f"{character!r} is no character of Z85")
            number = number * 85 + _VALUES[character]
        if number >= 1 << 32:
            raise ValueError(f"{text[at : at + 5]!r} stands for more than four bytes")
        made += number.to_bytes(4, "big")
    return bytes(made)
