"""Values private to a thread."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pqext.core.base.threads import ThreadLocalValue


def test_each_thread_creates_its_value_once() -> None:
    private = ThreadLocalValue(list[int])
    meeting = threading.Barrier(4)

    def use(number: int) -> list[int]:
        private.get().append(number)
        meeting.wait()  # so that each call has a thread of its own
        private.get().append(number)
        return private.get()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(use, range(4))) == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert private.get() == []


def test_pickled_value_is_recreated() -> None:
    private = ThreadLocalValue(dict[str, int])
    private.get()["count"] = 1
    assert pickle.loads(pickle.dumps(private)).get() == {}


def test_error_in_a_factory_is_raised_without_context() -> None:
    private: ThreadLocalValue[float] = ThreadLocalValue(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        private.get()
    assert raised.value.__context__ is None
