"""Modules and their AADs: what is sealed, under which identity, and what a key refuses."""

from __future__ import annotations

import itertools
import os
import pickle
import struct

import numpy as np
import pytest

from pqext.core.base.buffers import view
from pqext.core.base.errors import EncryptionError
from pqext.core.encryption import modules
from pqext.core.encryption.modules import AesKey, FileAad, Module, module_length
from pqext.core.encryption.reading import ChunkDecryptor
from pqext.core.encryption.writing import ChunkEncryptor, fit_page_rows
from pqext.core.options.encryption import ColumnKey, FileDecryption, FileEncryption, key_for
from reference import modular_encryption as reference

KEY = bytes(range(16))
AAD = FileAad(b"employees.part0", b"uniqueid")


@pytest.mark.spec("encryption.aad.suffix", "encryption.aad.module-types", "encryption.aad.prefix-first")
def test_aad_consists_of_prefix_file_module_and_ordinals() -> None:
    numbers = [module.value for module in Module]
    assert numbers == list(range(10))
    assert AAD.footer() == b"employees.part0uniqueid\x00"
    for module in list(Module)[1:]:
        paged = module.name in ("DATA_PAGE", "DATA_PAGE_HEADER")
        ordinals = (3, 258, 7) if paged else (3, 258)
        expected = b"employees.part0" + reference.suffix(b"uniqueid", module.value, *ordinals)
        assert AAD.chunk(module, 3, 258, 7) == expected
    assert AAD.chunk(Module.DATA_PAGE, 1, 2, 3)[-6:] == b"\x01\x00\x02\x00\x03\x00"


@pytest.mark.spec("encryption.aad.ordinals-16-bit")
def test_ordinals_are_two_little_endian_bytes() -> None:
    assert AAD.chunk(Module.DATA_PAGE, 0x0102, 0x0304, 0x0506)[-6:] == b"\x02\x01\x04\x03\x06\x05"


@pytest.mark.spec("encryption.aad.ordinals-16-bit")
def test_ordinals_beyond_16_bits_are_rejected() -> None:
    AAD.chunk(Module.DATA_PAGE, 32767, 32767, 32767)
    for place in range(3):
        ordinals = [0, 0, 0]
        for beyond in (32768, -1):
            ordinals[place] = beyond
            with pytest.raises(EncryptionError, match="have 16 bits"):
                AAD.chunk(Module.DATA_PAGE, *ordinals)
    with pytest.raises(ValueError, match="ordinal"):
        AAD.chunk(Module.DATA_PAGE, 0, 0, None)


@pytest.mark.spec("encryption.page-limit")
def test_pages_grow_to_stay_within_the_ordinals() -> None:
    assert fit_page_rows(100, 7) == 7
    assert fit_page_rows(32767, 1) == 1
    assert fit_page_rows(32768, 1) == 2
    for rows in (1, 40_000, 10**6, 2**31):
        assert -(-rows // fit_page_rows(rows, 1)) <= 32767


@pytest.mark.parametrize("length", [16, 24, 32])
@pytest.mark.spec("encryption.key-sizes", "encryption.gcm.module", "encryption.nonce")
def test_gcm_module_consists_of_length_nonce_ciphertext_and_tag(length: int) -> None:
    raw = os.urandom(length)
    key = AesKey(raw)
    for size in (0, 1, 15, 16, 17, 1000):
        text = os.urandom(size)
        module = key.seal(text, b"aad")
        assert len(module) == 4 + 12 + size + 16
        assert struct.unpack("<I", module[:4]) == (12 + size + 16,)
        assert reference.open_gcm(raw, module, b"aad") == text
        assert key.open(view(module), b"aad").tobytes() == text
    nonces = {key.seal(b"same", b"")[4:16] for _ in range(100)}
    assert len(nonces) == 100


@pytest.mark.spec("encryption.key-sizes")
def test_only_keys_of_16_24_and_32_bytes_are_accepted() -> None:
    for length in (16, 24, 32):
        assert FileEncryption(bytes(length), column_keys={"a": bytes(length)}).footer_key == bytes(length)
    for length in (0, 15, 17, 31, 33, 64):
        with pytest.raises(ValueError, match="16, 24 or 32"):
            FileEncryption(bytes(length))


@pytest.mark.parametrize("length", [16, 24, 32])
@pytest.mark.spec("encryption.ctr.module", "encryption.ctr.iv")
def test_ctr_module_consists_of_length_nonce_and_ciphertext(length: int) -> None:
    raw = os.urandom(length)
    key = AesKey(raw)
    for size in (0, 1, 16, 1000):
        text = os.urandom(size)
        module = key.seal_unauthenticated(text)
        assert len(module) == 4 + 12 + size
        assert struct.unpack("<I", module[:4]) == (12 + size,)
        assert reference.open_ctr(raw, module) == text
        assert key.open_unauthenticated(view(module)).tobytes() == text


@pytest.mark.spec("encryption.algorithm.gcm", "encryption.algorithm.gcm-ctr")
def test_gcm_encrypts_every_module_and_ctr_only_pages() -> None:
    for authenticate in (True, False):
        encryptor = ChunkEncryptor(AesKey(KEY), AAD, 0, 1, authenticate)
        decryptor = ChunkDecryptor(AesKey(KEY), AAD, 0, 1, authenticate)
        for module in list(Module)[1:]:
            sealed = encryptor.encrypt(module, b"plaintext", 5)
            tagged = authenticate or module not in (Module.DATA_PAGE, Module.DICTIONARY_PAGE)
            assert len(sealed) == 4 + 12 + 9 + 16 * tagged
            assert decryptor.decrypt(module, view(sealed), 5).tobytes() == b"plaintext"


@pytest.mark.spec("encryption.aad.suffix", "encryption.gcm.detects")
def test_module_decrypts_only_at_its_own_position() -> None:
    def cipher_at(prefix: bytes, unique: bytes, row_group: int, column: int) -> ChunkDecryptor:
        return ChunkDecryptor(AesKey(KEY), FileAad(prefix, unique), row_group, column, True)

    sealed = view(ChunkEncryptor(AesKey(KEY), AAD, 0, 1, True).encrypt(Module.DATA_PAGE, b"text", 2))
    assert cipher_at(b"employees.part0", b"uniqueid", 0, 1).decrypt(Module.DATA_PAGE, sealed, 2).tobytes() == b"text"
    wrong = [
        (cipher_at(b"employees.part1", b"uniqueid", 0, 1), Module.DATA_PAGE, 2),
        (cipher_at(b"employees.part0", b"uniqueie", 0, 1), Module.DATA_PAGE, 2),
        (cipher_at(b"employees.part0", b"uniqueid", 1, 1), Module.DATA_PAGE, 2),
        (cipher_at(b"employees.part0", b"uniqueid", 0, 0), Module.DATA_PAGE, 2),
        (cipher_at(b"employees.part0", b"uniqueid", 0, 1), Module.DATA_PAGE, 3),
        (cipher_at(b"employees.part0", b"uniqueid", 0, 1), Module.DATA_PAGE_HEADER, 2),
        (cipher_at(b"employees.part0", b"uniqueid", 0, 1), Module.DICTIONARY_PAGE, None),
    ]
    for decryptor, module, page in wrong:
        with pytest.raises(EncryptionError, match="not authentic"):
            decryptor.decrypt(module, sealed, page)
    with pytest.raises(EncryptionError, match="not authentic"):
        ChunkDecryptor(AesKey(KEY[::-1]), AAD, 0, 1, True).decrypt(Module.DATA_PAGE, sealed, 2)


@pytest.mark.spec("encryption.module-length")
def test_lengths_are_checked_before_use() -> None:
    key = AesKey(KEY)
    module = view(key.seal(b"text", b""))
    for broken in (module[:-1], np.append(module, np.uint8(0)), module[:20], module[:3], module[:0]):
        with pytest.raises(EncryptionError, match="declares"):
            key.open(broken, b"")
    with pytest.raises(EncryptionError, match="declares"):
        key.open_unauthenticated(module[:10])
    huge = view(b"\xff\xff\xff\xff")
    for left, most in ((100, 1 << 40), (1 << 40, 100)):
        with pytest.raises(EncryptionError, match="declares 4294967295 bytes"):
            module_length(huge, left, most)
    assert module_length(module[:4], len(module), 1000) == len(module)
    with pytest.raises(EncryptionError):
        module_length(view(b"\x05\0\0\0"), 100, 100)


@pytest.mark.spec("encryption.invocations")
def test_key_that_reached_its_usage_limit_encrypts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert modules.INVOCATIONS_MAX == 2**32
    key = AesKey(KEY)
    key._invocations = itertools.count(2**32)
    key.seal(b"the last", b"")
    for encrypt in (lambda: key.seal(b"", b""), lambda: key.seal_unauthenticated(b""), lambda: key.sign(b"", b"")):
        with pytest.raises(EncryptionError, match="new key"):
            encrypt()
    sealed = AesKey(KEY).seal(b"text", b"")
    assert key.open(view(sealed), b"").tobytes() == b"text"


@pytest.mark.spec("encryption.footer.signature")
def test_signature_is_nonce_and_tag_and_fits_one_text() -> None:
    key = AesKey(KEY)
    signature = key.sign(b"footer", AAD.footer())
    assert len(signature) == 28
    key.verify(view(b"footer"), signature, AAD.footer())
    flipped = signature[:-1] + bytes([signature[-1] ^ 1])
    for text, mark, aad in (
        (b"Footer", signature, AAD.footer()), (b"footer", flipped, AAD.footer()), (b"footer", signature, b""),
    ):
        with pytest.raises(EncryptionError, match="signature"):
            key.verify(view(text), mark, aad)


SECRET = b"top secret key.!"


@pytest.mark.spec("encryption.no-key-material")
def test_keys_are_never_displayed() -> None:
    encryption = FileEncryption(SECRET, b"meta", {"a": SECRET, "b": ColumnKey(SECRET, b"meta"), "c": None})
    decryption = FileDecryption(SECRET, {"a": SECRET}, key_retriever=lambda _: SECRET)
    for shown in (encryption, decryption, ColumnKey(SECRET), AesKey(SECRET), [encryption.column_keys]):
        for text in (repr(shown), str(shown)):
            assert "secret" not in text
            assert SECRET.hex() not in text
    with pytest.raises(TypeError):
        pickle.dumps(AesKey(SECRET))
    again = pickle.loads(pickle.dumps(encryption))
    assert again == encryption
    assert again.footer_key == SECRET


def test_invalid_keys_and_options_are_rejected_without_displaying_keys() -> None:
    bad = b"fifteen secrets"
    for make in (
        lambda: FileEncryption(bad), lambda: FileEncryption(SECRET, column_keys={"a": bad}),
        lambda: FileDecryption(bad), lambda: FileDecryption(column_keys={"a": bad}), lambda: ColumnKey(bad),
    ):
        with pytest.raises(ValueError, match="16, 24 or 32") as caught:
            make()
        assert "secret" not in str(caught.value)
    for wrong in ("text", 5, None):
        with pytest.raises(TypeError):
            FileEncryption(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="algorithm"):
        FileEncryption(SECRET, algorithm="AES_ECB")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="aad_prefix"):
        FileEncryption(SECRET, store_aad_prefix=False)
    with pytest.raises(ValueError, match="encrypt_columns"):
        FileEncryption(SECRET, encrypt_columns="some")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no key metadata"):
        ColumnKey(None, b"metadata")
    with pytest.raises(TypeError):
        FileEncryption(SECRET, column_keys=[SECRET])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        FileDecryption(key_retriever=SECRET)  # type: ignore[arg-type]


def test_leaf_uses_the_key_of_its_nearest_group() -> None:
    keys = {"a": 1, "a.b": 2, "x.list.element": 3}
    assert [key_for(path, keys) for path in ("a", "a.b", "a.b.c", "a.c", "x", "x.list.element", "ab")] == [
        1, 2, 2, 1, None, 3, None,
    ]


@pytest.mark.parametrize("mode", ["gcm", "ctr", "signature"])
def test_longest_module_has_exactly_the_maximum_size(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = AesKey(KEY)
    act = {"gcm": lambda data: key.seal(data, b""), "ctr": key.seal_unauthenticated,
           "signature": lambda data: key.sign(data, b"")}[mode]  # fmt: skip
    beside = 12 if mode == "ctr" else 28  # the nonce, and the tag of GCM
    monkeypatch.setattr(modules, "_MODULE_BYTES_MAX", 100)
    written = act(bytes(100 - beside))
    assert len(written) == (28 if mode == "signature" else 4 + 100)
    with pytest.raises(EncryptionError, match="larger than 2 GiB"):
        act(bytes(101 - beside))
