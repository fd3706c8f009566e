"""Verify a set of files by their AAD prefixes.

Spec: "Parquet Modular Encryption", section 4.4.1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from pqext.core.base.errors import EncryptionError
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.encryption.reading import MissingPrefixError
from pqext.core.footer.reading import read_footer
from pqext.core.io.sources.locations import open_source
from pqext.core.options.encryption import FileDecryption, to_bytes


def verify_file_set(
    sources: Iterable[Any], prefixes: Iterable[bytes | str], decryption: FileDecryption,
    *, limits: Limits = DEFAULT_LIMITS,
) -> dict[bytes, Any]:
    """Check that ``sources`` contains exactly one file for each of the AAD prefixes ``prefixes``, and no other file.

    Returns a mapping of prefixes to sources. ``sources`` are inputs of :func:`pqext.open`, in any order. For example, a
    table of N partitions is complete if ``prefixes`` are ``f"employees_23May2018.part{n}" for n in range(N)``. The
    footer of each file authenticates its prefix, so ``decryption`` must have the footer keys. Its ``aad_prefix`` is not
    used. For files that do not store their prefix, all prefixes that no other file has are tried.

    Raises an ``EncryptionError`` that lists missing, unexpected and duplicate files.

    >>> import pqext
    >>> from pqext import encryption
    >>> key = b"0123456789abcdef"
    >>> for part in ("a", "b"):
    ...     keys = encryption.FileEncryption(key, aad_prefix=part)
    ...     pqext.write_table({"id": [1]}, f"{part}.parquet", encryption=keys)
    >>> encryption.verify_file_set(["b.parquet", "a.parquet"], ["a", "b"], encryption.FileDecryption(key))
    {b'b': 'b.parquet', b'a': 'a.parquet'}
    """
    requested = [to_bytes(prefix, "a prefix") or b"" for prefix in prefixes]
    if len(set(requested)) != len(requested) or b"" in requested:
        raise ValueError(f"prefixes must be distinct and non-empty, not {requested!r}")
    result: dict[bytes, Any] = {}
    faults: list[str] = []
    hidden: list[tuple[str, Any]] = []

    def authenticated_prefix(source: Any, prefix: bytes | None) -> bytes:
        """Authenticate a file with the footer key, and return its AAD prefix. ``prefix`` is the expected prefix.
        """
        known = dataclasses.replace(decryption, aad_prefix=prefix, plaintext_files_allowed=True)
        with open_source(source) as opened:
            footer = read_footer(opened, limits, known)
        if footer.decryptor is None:
            raise EncryptionError("the file is not encrypted")
        if not footer.decryptor.authentic:
            raise EncryptionError("the AAD prefix cannot be verified without the footer key; pass footer_key")
        return footer.decryptor.aad.prefix

    for position, source in enumerate(sources):
        name = source if isinstance(source, str) else f"file {position}"
        try:
            prefix = authenticated_prefix(source, None)
        except MissingPrefixError:
            hidden.append((name, source))
            continue
        except EncryptionError as error:
            faults.append(f"{name}: {error.message}")
            continue
        if prefix in result:
            faults.append(f"{name}: another file has its AAD prefix {prefix!r}")
        elif prefix in requested:
            result[prefix] = source
        else:
            faults.append(f"{name}: its AAD prefix {prefix!r} does not belong to the set")
    for name, source in hidden:
        for prefix in [item for item in requested if item not in result]:
            try:
                authenticated_prefix(source, prefix)
            except EncryptionError:
                continue
            result[prefix] = source
            break
        else:
            faults.append(f"{name}: none of the remaining AAD prefixes matches")
    faults += [f"no file has the AAD prefix {prefix!r}" for prefix in requested if prefix not in result]
    if faults:
        raise EncryptionError("the files are not the expected set: " + "; ".join(faults))
    return result
