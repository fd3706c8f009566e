"""The examples in the docstrings of pqext.variant run and print what they say."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

from pqext import variant

MODULES = sorted({getattr(variant, name).__module__ for name in variant.__all__})


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_run(module: str) -> None:
    assert doctest.testmod(import_module(module)).failed == 0
