"""The cache of what was used last, against a list that is searched from its end."""

from __future__ import annotations

import faulthandler
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pqext.core.base.lru import LRU

_KEYS = st.integers(0, 5)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _KEYS, st.integers(0, 12)),
        st.tuples(st.just("get"), _KEYS, st.just(0)),
        st.tuples(st.just("make"), _KEYS, st.integers(0, 12)),
        st.tuples(st.just("weigh"), _KEYS, st.integers(0, 12)),
        st.tuples(st.just("remove"), _KEYS, st.just(0)),
        st.tuples(st.just("limit"), st.integers(0, 20), st.just(0)),
    ),
    max_size=30,
)


class _Slow:
    """Entries as a list of (key, value, weight), those used last at its end."""

    def __init__(self, limit: int, keeps_last: bool) -> None:
        self.limit, self.keeps_last = limit, keeps_last
        self.entries: list[tuple[int, int, int]] = []

    def step(self, kind: str, key: int, weight: int, value: int) -> int | None:
        found = next((one for one in self.entries if one[0] == key), None)
        others = [one for one in self.entries if one[0] != key]
        result = None if found is None else found[1]
        if kind == "limit":
            self.limit = key
        elif kind == "remove":
            self.entries = others
        elif kind == "weigh" and found is not None:
            self.entries = [(*one[:2], weight) if one[0] == key else one for one in self.entries]
        elif kind in ("get", "make") and found is not None:
            self.entries = [*others, found]
        elif kind in ("put", "make"):
            result = value
            self.entries = others
            if weight <= self.limit or self.keeps_last:
                self.entries.append((key, value, weight))
        while sum(one[2] for one in self.entries) > self.limit and len(self.entries) > self.keeps_last:
            del self.entries[0]
        return result


@given(st.integers(0, 20), st.booleans(), _STEPS)
def test_cache_retains_the_most_recently_used_values(
    limit: int, keeps_last: bool, steps: list[tuple[str, int, int]]
) -> None:
    cache: LRU[int, int] = LRU(limit, keeps_last=keeps_last)
    slow = _Slow(limit, keeps_last)
    for value, (kind, key, weight) in enumerate(steps):
        expected = slow.step(kind, key, weight, value)
        if kind == "put":
            cache.put(key, value, weight)
        elif kind == "get":
            assert cache.get(key) == expected
        elif kind == "make":
            assert cache.get_or_make(key, lambda made=value: made, lambda _, size=weight: size) == expected  # type: ignore[misc]
        elif kind == "weigh":
            cache.weigh(key, weight)
        elif kind == "remove":
            cache.remove(key)
        else:
            cache.limit = key
        assert list(cache.values()) == [one[1] for one in slow.entries]
        assert cache.weight == sum(one[2] for one in slow.entries)
        assert all((key in cache) == any(one[0] == key for one in slow.entries) for key in range(6))


def test_threads_leave_the_weight_consistent() -> None:
    cache: LRU[int, int] = LRU(50)

    def use(seed: int) -> None:
        for step in range(2_000):
            key = (step * seed) % 97
            cache.get_or_make(key, lambda made=key: made, lambda made: made % 7)  # type: ignore[misc]
            if step % 13 == 0:
                cache.remove(key)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, (3, 5, 7, 11)))
    assert cache.weight == sum(key % 7 for key in cache.values()) <= 50


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_child_does_not_wait_for_a_missing_thread() -> None:
    cache: LRU[int, int] = LRU(2)
    cache.put(1, 7)
    with cache._lock:  # as another thread holds it
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(20, exit=True)  # rather than waiting for ever
            os._exit(cache.get(1) or 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
