"""Ranges of a remote file: merged, kept, tried again, and always the bytes that the file has."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.io.sources import remote
from pqext.core.io.sources.cache import CACHE, CachedRanges, MetadataCache
from pqext.core.io.sources.remote import RemoteSource, Version
from pqext.core.io.sources.store import LEAST_GAP, MOST_GAP, Link, ListedFile, Store
from pqext.core.io.sources.store_errors import ResponseError, classify_error, collect_secrets, redact_error, redact_uri
from reference.effort import share

DATA = bytes(at * 7 % 251 for at in range(5_000))


class Kept(Store):
    """A store of one file in memory, which fails as it is told."""

    def __init__(self, faults: list[Exception | None]) -> None:
        super().__init__(frozenset({"sesame"}))
        self.faults = faults

    def name(self, path: str) -> str:
        return f"kept://{path}"

    def open(self, path: str, name: str) -> KeptFile:
        return KeptFile(self, path, name, len(DATA), Version("etag 1"))

    def files(self, path: str) -> list[ListedFile]:
        return []

    def create(self, path: str, name: str) -> Any:
        raise NotImplementedError

    def remove(self, path: str) -> None:
        raise NotImplementedError


class KeptFile(RemoteSource):
    has_response_versions = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.asked: list[tuple[int, int]] = []

    def _request(self, offset: int, length: int, attempts: int) -> Any:
        assert isinstance(self._store, Kept)
        fault = self._store.faults.pop(0) if self._store.faults else None
        if fault is not None:
            raise fault
        self.asked.append((offset, length))
        return DATA[offset : offset + length]


@st.composite
def ranges(draw: st.DrawFn) -> list[tuple[int, int]]:
    found = []
    for _ in range(draw(st.integers(0, 8))):
        offset = draw(st.integers(0, len(DATA)))
        found.append((offset, draw(st.integers(0, min(len(DATA) - offset, 800)))))
    return found


@pytest.mark.spec("querying.once", "querying.coalescing")
@settings(max_examples=share(0.5))
@given(st.lists(st.tuples(ranges(), st.booleans()), max_size=4), st.integers(0, 300), st.integers(50, 900))
def test_reads_return_the_bytes_of_the_file_and_request_cached_ones_once(
    reads: list[tuple[list[tuple[int, int]], bool]], gap: int, most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "REQUEST_BYTES", most)
        source = Kept([]).open("x", "kept://x")
        kept: set[int] = set()
        for wanted, keep in reads:
            source.merge_gap = gap
            source.asked.clear()
            assert [bytes(data) for data in source.read_many(wanted, is_metadata=keep)] == [
                DATA[offset : offset + length] for offset, length in wanted
            ]
            fetched = [at for offset, length in source.asked for at in range(offset, offset + length)]
            assert len(fetched) == len(set(fetched)), "a byte was fetched twice"
            assert not kept.intersection(fetched), "a kept byte was fetched again"
            assert all(length <= most for _, length in source.asked)
            if keep:
                kept.update(fetched)


SPANS = [(start, stop) for start in (0, 1, 100) for stop in (2, 101, 150, 200) if start < stop]


@pytest.mark.parametrize("is_metadata", [(False, False), (False, True), (True, False)])
def test_only_bytes_outside_earlier_ranges_are_requested(is_metadata: tuple[bool, bool]) -> None:
    """The third range is read after two others, of which bytes remain in memory."""
    for first, second, third in product(SPANS, repeat=3):
        source = Kept([]).open("x", "kept://x")
        source.merge_gap = 0
        for (start, stop), is_cached in zip((first, second), is_metadata, strict=True):
            source.read_many([(start, stop - start)], is_metadata=is_cached)
        held = {at for start, stop in (first, second) for at in range(start, stop)}
        source.asked.clear()
        (data,) = source.read_many([(third[0], third[1] - third[0])])
        assert bytes(data) == DATA[slice(*third)]
        requested = {at for offset, length in source.asked for at in range(offset, offset + length)}
        assert requested >= set(range(*third)) - held
        assert requested <= set(range(*third))


@pytest.mark.spec("querying.retries")
def test_transient_errors_are_retried_and_then_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    broken = ConnectionError("connection reset by sesame at https://me:sesame@host/x?signature=1")
    source = Kept([broken, TimeoutError("too late"), ResponseError("short", is_retryable=True)]).open("x", "kept://x")
    assert bytes(source.read(10, 5)) == DATA[10:15]
    assert len(waited) == 3
    assert waited == sorted(waited) or max(waited) < 1
    assert source.requests == 4
    source = Kept([broken] * 9).open("x", "kept://x")
    with pytest.raises(pqext.SourceError, match=r"5 bytes at 10 could not be fetched in 4 attempts") as told:
        source.read(10, 5)
    assert "sesame" not in str(told.value)
    assert "signature" not in str(told.value)
    assert (told.value.path, told.value.offset) == ("kept://x", 10)
    final = Kept([PermissionError("no")]).open("x", "kept://x")
    with pytest.raises(pqext.SourceError, match=r"could not be fetched: no"):
        final.read(10, 5)
    gone = Kept([FileNotFoundError("x")]).open("x", "kept://x")
    with pytest.raises(pqext.ChangedFileError, match="removed"):
        gone.read(10, 5)


@pytest.mark.parametrize(("error", "kind"), [
    (FileNotFoundError("x"), "missing"), (PermissionError("x"), "denied"), (TimeoutError(), "transient"),
    (OSError("AWS Error UNKNOWN (HTTP status 503)"), "transient"), (OSError("HTTP status 400"), "final"),
    (OSError("Server returned non-2xx status code: 429 Too Many Requests"), "transient"),
    (OSError("status code: 404"), "missing"), (OSError("AWS Error ACCESS_DENIED during GetObject"), "denied"),
    (ResponseError("x", is_retryable=False), "final"), (ConnectionResetError(), "transient"),
])
@pytest.mark.spec("querying.retries")
def test_errors_are_classified(error: Exception, kind: str) -> None:
    assert classify_error(error) == kind


@pytest.mark.spec("querying.cache")
@pytest.mark.parametrize(("limit", "files"), [(100_000, 4), (11_024 * 3, 3), (11_024 * 3 - 1, 2), (11_024, 1), (0, 0)])
def test_lower_cache_limit_evicts_oldest_files_immediately(limit: int, files: int) -> None:
    cache = MetadataCache()
    for number in range(4):  # each counts as its 10,000 bytes and 1,024 for itself
        cache.ranges((1, str(number)), ("etag", 10_000)).add(0, remote.view(bytes(10_000)))
        cache.update_size((1, str(number)))
    cache.limit = limit
    assert cache.cached_bytes == files * 10_000
    assert [
        cache.latest_version((1, str(number))) is not None for number in range(4)
    ] == [False] * (4 - files) + [True] * files


@pytest.mark.spec("querying.cache")
def test_cache_is_bounded_and_distinguishes_versions() -> None:
    cache = MetadataCache(10_000)
    data = remote.view(DATA)
    for number in range(50):
        kept = cache.ranges((1, str(number)), ("etag 1", 5_000))
        kept.add(0, data[:1_500])
        cache.update_size((1, str(number)))
        assert cache.cached_bytes <= 10_000
    assert cache.latest_version((1, "49")) == ("etag 1", 5_000)
    assert cache.latest_version((1, "0")) is None
    assert cache.ranges((1, "49"), ("etag 1", 5_000)).size == 1_500
    assert cache.ranges((2, "49"), ("etag 1", 5_000)).size == 0
    assert cache.ranges((1, "49"), ("etag 2", 5_000)).size == 0
    assert cache.ranges((1, "48"), ("etag 1", 5_001)).size == 0
    cache.limit = 0
    assert cache.cached_bytes == 0
    assert cache.ranges((1, "3"), ("etag 1", 1)).size == 0
    with pytest.raises(ValueError, match="must be non-negative"):
        pqext.set_cache_bytes(-1)


@pytest.mark.spec("querying.cache")
def test_recent_modification_time_does_not_identify_a_version() -> None:
    pqext.clear_cache()
    for version, held in (
        (None, 0), (Version.from_timestamp(remote.time.time(), "now"), 0), (Version.from_timestamp(1.0, "then"), 1_000)
    ):
        source = KeptFile(Kept([]), "x", "kept://x", len(DATA), version)
        source.read(4_000, 1_000, is_metadata=True)
        source.add_metadata(4_000)
        assert CACHE.cached_bytes == held
        pqext.clear_cache()


@settings(max_examples=share(0.3))
@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 30)), max_size=12))
def test_cached_ranges_return_the_bytes_they_contain(added: list[tuple[int, int]]) -> None:
    kept, known = CachedRanges(), set[int]()
    for start, length in added:
        kept.add(start, remote.view(DATA[start : start + length]))
        known.update(range(start, start + length))
    assert kept.size == len(known)
    for start, stop in ((0, 130), (17, 45), (60, 61)):
        at = start
        for first, last, held in kept.segments(start, stop):
            assert first == at < last
            at = last
            assert (held is not None) == all(place in known for place in range(first, last))
            assert held is None or bytes(held) == DATA[first:last]
        assert at == stop
    end = 120
    while end - 1 in known:
        end -= 1
    assert kept.contiguous_start(120) == end


def test_gap_and_tail_follow_the_measured_link() -> None:
    link = Link()
    assert (link.gap, link.tail) == (1 << 20, 512 << 10)
    for _ in range(20):
        link.add_request(100, 0.020)
        link.add_request(8 << 20, 0.020 + 8 / 50)
    assert link.gap == pytest.approx(50 * 0.020 * (1 << 20), rel=0.1)
    unknown_latency = Link()
    unknown_latency.add_request((256 << 10) - 1, 9.0)  # measures neither
    unknown_latency.add_request(256 << 10, 0.25)
    assert (unknown_latency.bandwidth, unknown_latency.gap) == (1 << 20, 1 << 20)
    unknown_latency.add_request((64 << 10) + 1, 9.0)
    unknown_latency.add_request(64 << 10, 0.5)
    assert (unknown_latency.latency, unknown_latency.gap) == (0.5, 512 << 10)
    unknown_latency.add_request(512 << 10, 0.25)  # of which the latency is at most a half
    assert unknown_latency.bandwidth == pytest.approx(0.7 * (1 << 20) + 0.3 * (4 << 20))
    fast = Link()
    fast.add_request(100, 0.0001)
    fast.add_request(8 << 20, 0.5)
    assert fast.gap == LEAST_GAP
    far = Link()
    far.add_request(100, 0.5)
    far.add_request(8 << 20, 0.6)
    assert far.gap == MOST_GAP
    link.add_tail(100_000)
    assert link.tail == 125_000
    link.add_tail(3_000_000)
    assert link.tail == 3_750_000
    for _ in range(30):
        link.add_tail(1_000)
    assert link.tail == 32 << 10


@pytest.mark.spec("querying.retries")
def test_secrets_are_removed_from_names_and_messages() -> None:
    assert redact_uri("https://a:b@host:80/x.parquet?sig=1#f") == "https://host:80/x.parquet"
    assert redact_uri("s3://key:word@bucket/a?region=eu") == "s3://bucket/a"
    assert redact_uri("s3://bucket/what?.parquet") == "s3://bucket/what?.parquet"
    assert redact_uri("abfss://container@account.dfs.core.windows.net/a") == "abfss://container@account.dfs.core.windows.net/a"
    assert redact_uri("/local/path?x=1") == "/local/path?x=1"
    assert redact_uri("hdfs://[::1]:8020/a@b") == "hdfs://[::1]:8020/a@b"
    assert redact_uri("abfss://container:word@account.dfs.core.windows.net/a") == (
        "abfss://container@account.dfs.core.windows.net/a"
    )
    assert redact_uri("abfs://:word@account.dfs.core.windows.net/a") == "abfs://account.dfs.core.windows.net/a"
    assert redact_uri("zip://a.parquet::https://me:word@host/b.zip?sig=1") == "zip://a.parquet::https://host/b.zip"
    assert redact_uri("simplecache::https://me:word@host/b?sig") == "simplecache::https://host/b"
    for word in ("wo/rd", "wo#rd", "wo?rd", "wo/r?d/x", "wo@rd"):  # not escaped, as they should be
        for scheme in ("https", "s3", "abfs", "ftp"):
            uri = f"{scheme}://me:{word}@host/a"
            assert redact_uri(uri).removeprefix(f"{scheme}://").removeprefix("me@") == "host/a", uri
            assert "rd" not in redact_error(f"no route to {uri}"), uri
    assert redact_uri("https://me:wo/rd" + "x" * 9) == "https://***"
    assert redact_error("https://[::1]:80/x and s3://b/k: gone") == "https://[::1]:80/x and s3://b/k: gone"
    options = {"secret": "sesame", "nested": {"token": b"open sesame"}, "list": ["abcd"], "flag": "true"}
    hidden = collect_secrets(options)
    assert hidden == {"sesame", "open sesame", "abcd"}
    text = "GET https://u:p@host/x?sig=abc failed for sesame and open sesame\nDebug source: more"
    assert redact_error(OSError(text), hidden) == "GET https://host/x failed for *** and ***"
    assert redact_error(TimeoutError()) == "TimeoutError"
    assert len(redact_error("x" * 1_000)) < 400
    with pytest.raises(ValueError, match="refers to another machine") as caught:
        pqext.scan("file://me:sesame@host/a.parquet")
    assert "sesame" not in str(caught.value)
