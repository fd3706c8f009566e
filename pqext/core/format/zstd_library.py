"""Where the functions of the zstd library lie, for kernels to call without the interpreter.

The package `zstandard` carries the library in one of its modules, which shows it like any shared library; otherwise the
system's is asked for. Where neither has it, pages are unpacked by calls from Python, which takes longer.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from functools import cache

from pqext.core.base.threads import PerThread
from pqext.core.kernels.decode.zstd import Context

_NAMES = ("ZSTD_createDCtx", "ZSTD_freeDCtx", "ZSTD_decompressDCtx", "ZSTD_isError")
_LEAST_VERSION = 10_400
"""Before 1.4 the library was not yet stable in all that is asked of it."""


def context() -> Context | None:
    """What this thread unpacks with, ``None`` where the library cannot be had."""
    return _contexts.get()


def _new_context() -> Context | None:
    found = _functions()
    return None if found is None else Context(*found)


_contexts = PerThread(_new_context)


@cache
def _functions() -> tuple[int, ...] | None:
    """The addresses of the functions in the first library that has them all."""
    for place in _places():
        try:
            library = ctypes.CDLL(place)
            if library.ZSTD_versionNumber() < _LEAST_VERSION:
                continue
            found = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _NAMES]
        except (OSError, AttributeError):
            continue
        addresses = tuple(address for address in found if address)
        if len(addresses) == len(_NAMES):
            return addresses
    return None


def _places() -> Iterator[str]:
    """Files and names that may be the library."""
    try:
        module = importlib.util.find_spec("zstandard._cffi")
    except ImportError:
        module = None
    if module is not None and module.origin is not None:
        yield module.origin
    yield "libzstd.so.1"
    yield "libzstd.1.dylib"
