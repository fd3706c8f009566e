"""Key tools: keys wrapped by a KMS as parquet-java and pyarrow wrap them, read by each other."""

from __future__ import annotations

import base64
import io
import json
import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import pqext
from pqext.core.base.errors import EncryptionError
from pqext.core.encryption.keytools.material import KeyMaterial, KeyMaterialStore, parse_metadata, serialise_reference
from pqext.core.encryption.keytools.wrapping import KmsCache, unwrap_locally, wrap_locally
from pqext.encryption import (
    CryptoFactory,
    DecryptionConfiguration,
    EncryptionConfiguration,
    FileDecryption,
    KmsClient,
    KmsConnectionConfig,
)

MASTERS = {"kf": b"0123456789012345", "kc1": b"1234567890123450", "kc2": b"1234567890123451"}
TABLE = pa.table({"a": [1, 2, None], "b": ["x", "y", "z"], "c": [[1.5], [], None]})
COLUMNS = {"kc1": ["a"], "kc2": ["c.list.element"]}


class Wrapping:
    """A KMS in memory, which wraps as the mock KMS of parquet-java and Arrow does; counts what it is asked."""

    asked = 0

    def __init__(self, config: Any, masters: dict[str, bytes]) -> None:
        self.config = config
        self.masters = masters

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        type(self).asked += 1
        return wrap_locally(key_bytes, self.masters[master_key_identifier], master_key_identifier.encode())

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        type(self).asked += 1
        if isinstance(wrapped_key, bytes):
            wrapped_key = wrapped_key.decode()
        return unwrap_locally(wrapped_key, self.masters[master_key_identifier], master_key_identifier.encode())


class OurClient(Wrapping, KmsClient):
    pass


class TheirClient(Wrapping, pe.KmsClient):
    def __init__(self, config: Any, masters: dict[str, bytes]) -> None:
        pe.KmsClient.__init__(self)
        Wrapping.__init__(self, config, masters)


def factory(masters: dict[str, bytes] = MASTERS) -> CryptoFactory:
    return CryptoFactory(lambda config: OurClient(config, masters))


def pyarrow_factory(masters: dict[str, bytes] = MASTERS) -> pe.CryptoFactory:
    return pe.CryptoFactory(lambda config: TheirClient(config, masters))


CONNECTION = KmsConnectionConfig()
ANY = pytest.mark.parametrize(
    "choices",
    [
        {"uniform_encryption": True},
        {"uniform_encryption": True, "double_wrapping": False, "data_key_length_bits": 256},
        {"column_keys": COLUMNS},
        {"column_keys": COLUMNS, "double_wrapping": False, "data_key_length_bits": 192},
        {"column_keys": COLUMNS, "plaintext_footer": True},
        {"column_keys": COLUMNS, "encryption_algorithm": "AES_GCM_CTR_V1"},
        {"column_keys": {"kc1": ["a", "b"]}, "encryption_algorithm": "AES_GCM_CTR_V1", "plaintext_footer": True},
    ],
    ids=lambda choices: " ".join(f"{name}" for name in choices),
)


def read(source: Any, masters: dict[str, bytes] = MASTERS, **selection: Any) -> pa.Table:
    decryption = factory(masters).file_decryption_properties(CONNECTION)
    with pqext.open(source, pqext.ReadOptions(decryption=decryption)) as file:
        return file.read(**selection)


@ANY
@pytest.mark.spec("encryption.tools.internal", "encryption.tools.double-wrapping", "encryption.tools.wrapping")
def test_pyarrow_reads_files_encrypted_by_our_factory(choices: dict[str, Any]) -> None:
    config = EncryptionConfiguration("kf", **choices)
    out = io.BytesIO()
    pqext.write_table(TABLE, out, encryption=factory().file_encryption_properties(CONNECTION, config))
    properties = pyarrow_factory().file_decryption_properties(pe.KmsConnectionConfig())
    assert pq.ParquetFile(io.BytesIO(out.getvalue()), decryption_properties=properties).read().equals(TABLE)
    assert read(out.getvalue()).equals(TABLE)


@ANY
@pytest.mark.spec("encryption.tools.internal", "encryption.tools.double-wrapping", "encryption.tools.wrapping")
def test_files_encrypted_by_pyarrow_factory_are_read(choices: dict[str, Any]) -> None:
    config = pe.EncryptionConfiguration("kf", **choices)
    out = io.BytesIO()
    properties = pyarrow_factory().file_encryption_properties(pe.KmsConnectionConfig(), config)
    pq.write_table(TABLE, out, encryption_properties=properties)
    assert read(out.getvalue()).equals(TABLE)
    if "column_keys" in choices:
        # Without one master key the columns of the others are still read.
        without = {name: key for name, key in MASTERS.items() if name != "kc1"}
        kept = [name for name in ("a", "b", "c") if name not in choices["column_keys"]["kc1"]]
        assert read(out.getvalue(), without, columns=kept).equals(TABLE.select(kept))
        with pytest.raises(EncryptionError, match="did not return the key of column 'a'") as caught:
            read(out.getvalue(), without)
        assert caught.value.column == "a"


@pytest.mark.spec("encryption.tools.external", "encryption.tools.file-name")
def test_external_material_is_exchanged_with_pyarrow(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    config = EncryptionConfiguration("kf", column_keys=COLUMNS, internal_key_material=False)
    encryption = factory().file_encryption_properties(CONNECTION, config, ours)
    assert (tmp_path / "_KEY_MATERIAL_FOR_ours.parquet.json").exists()
    pqext.write_table(TABLE, ours, encryption=encryption)
    assert read(ours).equals(TABLE)
    assert b'"keyReference":"footerKey"' in ours.read_bytes()
    assert b"wrappedDEK" not in ours.read_bytes()
    properties = pyarrow_factory().file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(ours)
    )
    assert pq.ParquetFile(ours, decryption_properties=properties).read().equals(TABLE)
    config = pe.EncryptionConfiguration("kf", column_keys=COLUMNS, internal_key_material=False)
    properties = pyarrow_factory().file_encryption_properties(pe.KmsConnectionConfig(), config, str(theirs))
    pq.write_table(TABLE, theirs, encryption_properties=properties)
    material = (tmp_path / "_KEY_MATERIAL_FOR_theirs.parquet.json").read_text()
    assert sorted(json.loads(material)) == ["columnKey0", "columnKey1", "footerKey"]
    assert sorted(KeyMaterialStore(str(ours)).load().references()) == sorted(json.loads(material))
    assert read(theirs).equals(TABLE)
    with pytest.raises(FileExistsError, match="keys of an earlier Parquet file"):
        factory().file_encryption_properties(
            CONNECTION, EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False), ours
        )
    damaged = tmp_path / "_KEY_MATERIAL_FOR_theirs.parquet.json"
    damaged.write_text(material[:-1])
    with pytest.raises(EncryptionError) as told:
        read(theirs)
    assert told.value.path == str(damaged)
    damaged.unlink()
    with pytest.raises(EncryptionError, match="is missing"):
        read(theirs)
    with pytest.raises(EncryptionError, match="path is unknown"):
        read(theirs.read_bytes())


@pytest.mark.spec("encryption.tools.external")
def test_external_material_of_parquet_java_is_read(parquet_testing: Path) -> None:
    path = parquet_testing / "data" / "external_key_material_java.parquet.encrypted"
    table = read(path)
    assert table.num_rows > 0
    properties = pyarrow_factory().file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
    )
    assert table.equals(pq.ParquetFile(path, decryption_properties=properties).read())


def test_public_files_are_not_those_of_key_tools(parquet_testing: Path) -> None:
    path = parquet_testing / "data" / "uniform_encryption.parquet.encrypted"
    with pytest.raises(EncryptionError, match="not JSON of Parquet key tools"):
        read(path)


@pytest.mark.spec("encryption.tools.rotation")
@pytest.mark.parametrize("double_wrapping", [True, False])
def test_only_rotated_master_keys_open_the_files(tmp_path: Path, double_wrapping: bool) -> None:
    class Versioned(OurClient):
        """Wraps with the newest version of a master key and unwraps with the one that wrapped."""

        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            newest = max(name for name in self.masters if name.startswith(f"{master_key_identifier}:"))
            return f"{newest}|" + wrap_locally(key_bytes, self.masters[newest], b"")

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            version, _, wrapped = wrapped_key.partition("|")
            return unwrap_locally(wrapped, self.masters[version], b"")

    masters = {f"{name}:1": key for name, key in MASTERS.items()}
    crypto = CryptoFactory(lambda config: Versioned(config, masters))
    config = EncryptionConfiguration("kf", column_keys=COLUMNS, internal_key_material=False)
    for name in ("x.parquet", "y.parquet"):
        encryption = crypto.file_encryption_properties(CONNECTION, config, tmp_path / name)
        pqext.write_table(TABLE, tmp_path / name, encryption=encryption)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def opens(path: Path) -> pa.Table:
        fresh = CryptoFactory(lambda config: Versioned(config, masters))
        decryption = fresh.file_decryption_properties(CONNECTION)
        with pqext.open(path, pqext.ReadOptions(decryption=decryption)) as file:
            return file.read()

    masters.update({f"{name}:2": key[::-1] for name, key in MASTERS.items()})
    assert opens(tmp_path / "x.parquet").equals(TABLE)
    rotated = crypto.rotate_master_keys(CONNECTION, tmp_path, double_wrapping=double_wrapping)
    assert [Path(path).name for path in rotated] == [f"_KEY_MATERIAL_FOR_{name}.parquet.json" for name in "xy"]
    for name in MASTERS:
        del masters[f"{name}:1"]
    for name in ("x.parquet", "y.parquet"):
        assert opens(tmp_path / name).equals(TABLE)
        assert (tmp_path / name).read_bytes() == before[name]
        store = KeyMaterialStore(str(tmp_path / name)).load()
        footer = KeyMaterial.parse(store.get("footerKey"))
        assert (footer.kek_id is not None) == double_wrapping
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(before)
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(EncryptionError):
        opens(tmp_path / "x.parquet")


@pytest.mark.spec("encryption.tools.rotation")
def test_master_key_can_be_replaced(tmp_path: Path) -> None:
    config = EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False)
    path = tmp_path / "x.parquet"
    crypto = factory()
    pqext.write_table(TABLE, path, encryption=crypto.file_encryption_properties(CONNECTION, config, path))
    crypto.rotate_master_keys(CONNECTION, tmp_path, master_keys={"kf": "kc1"})
    assert read(path, {"kc1": MASTERS["kc1"]}).equals(TABLE)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(EncryptionError, match="no key material"):
        crypto.rotate_master_keys(CONNECTION, empty)


@pytest.mark.spec("encryption.tools.double-wrapping")
def test_double_wrapping_calls_the_kms_once_per_master_key_and_token() -> None:
    crypto = factory()
    config = EncryptionConfiguration("kf", column_keys={"kc1": ["a", "b", "c"]})
    Wrapping.asked = OurClient.asked = 0
    files = []
    for _ in range(3):
        out = io.BytesIO()
        pqext.write_table(TABLE, out, encryption=crypto.file_encryption_properties(CONNECTION, config))
        files.append(out.getvalue())
    assert OurClient.asked == 2
    decryption = crypto.file_decryption_properties(CONNECTION)
    for data in files:
        with pqext.open(data, pqext.ReadOptions(decryption=decryption)) as file:
            assert file.read().equals(TABLE)
    assert OurClient.asked == 4
    crypto.remove_cache_entries_for_all_tokens()
    with pqext.open(files[0], pqext.ReadOptions(decryption=decryption)) as file:
        file.read()
    assert OurClient.asked == 6


FOREIGN = {name: key[::-1] for name, key in MASTERS.items()}
LIKE_NAMED = pytest.mark.parametrize(
    "connections",
    [
        [KmsConnectionConfig(name, "https://kms.example", "token") for name in ("east", "west")],
        [KmsConnectionConfig("kms", f"https://{name}.example", "token") for name in ("east", "west")],
        [KmsConnectionConfig("kms", "https://kms.example", "token", {"region": name}) for name in ("e", "w")],
    ],
    ids=["instance", "url", "settings"],
)


@LIKE_NAMED
@pytest.mark.parametrize("double_wrapping", [True, False])
@pytest.mark.spec("encryption.tools.double-wrapping")
def test_factory_never_wraps_for_one_kms_with_keys_of_another(
    connections: list[KmsConnectionConfig], double_wrapping: bool
) -> None:
    def client(config: KmsConnectionConfig) -> OurClient:
        return OurClient(config, MASTERS if config == connections[0] else FOREIGN)

    shared = CryptoFactory(client)
    config = EncryptionConfiguration("kf", column_keys=COLUMNS, double_wrapping=double_wrapping)
    for connection, masters in (*zip(connections, (MASTERS, FOREIGN), strict=True), (connections[0], MASTERS)):
        out = io.BytesIO()
        pqext.write_table(TABLE, out, encryption=shared.file_encryption_properties(connection, config))
        properties = pyarrow_factory(masters).file_decryption_properties(pe.KmsConnectionConfig())
        assert pq.ParquetFile(io.BytesIO(out.getvalue()), decryption_properties=properties).read().equals(TABLE)
        decryption = shared.file_decryption_properties(connection)
        with pqext.open(out.getvalue(), pqext.ReadOptions(decryption=decryption)) as file:
            assert file.read().equals(TABLE)


@LIKE_NAMED
def test_keys_unwrapped_by_one_kms_open_no_file_of_another(connections: list[KmsConnectionConfig]) -> None:
    class Refusing(OurClient):
        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            raise PermissionError(master_key_identifier)

    shared = CryptoFactory(
        lambda config: (OurClient if config == connections[0] else Refusing)(config, MASTERS)
    )
    out = io.BytesIO()
    config = EncryptionConfiguration("kf", uniform_encryption=True)
    pqext.write_table(TABLE, out, encryption=shared.file_encryption_properties(connections[0], config))
    allowed, refused = (
        pqext.ReadOptions(decryption=shared.file_decryption_properties(connection)) for connection in connections
    )
    with pqext.open(out.getvalue(), allowed) as file:
        assert file.read().equals(TABLE)
    with pytest.raises(EncryptionError, match="PermissionError"):
        pqext.open(out.getvalue(), refused)


@pytest.mark.spec("encryption.tools.rotation")
def test_keys_are_rotated_by_the_kms_named_in_the_material(tmp_path: Path) -> None:
    def client(config: KmsConnectionConfig) -> OurClient:
        return OurClient(config, MASTERS if config.kms_instance_id == "east" else FOREIGN)

    crypto = CryptoFactory(client)
    config = EncryptionConfiguration("kf", column_keys=COLUMNS, internal_key_material=False)
    east = KmsConnectionConfig("east", "https://east.example")
    path = tmp_path / "x.parquet"
    pqext.write_table(TABLE, path, encryption=crypto.file_encryption_properties(east, config, path))
    crypto.rotate_master_keys(CONNECTION, tmp_path)
    assert read(path).equals(TABLE)
    footer = KeyMaterial.parse(KeyMaterialStore(str(path)).load().get("footerKey"))
    assert (footer.kms_instance_id, footer.kms_instance_url) == ("east", "https://east.example")


def test_failed_write_of_key_material_leaves_no_file(tmp_path: Path) -> None:
    store = KeyMaterialStore(str(tmp_path / "x.parquet"))
    store.add("footerKey", "x" * 100)
    (tmp_path / "_KEY_MATERIAL_FOR_x.parquet.json").mkdir()  # in the way of the rename
    with pytest.raises(OSError, match="KEY_MATERIAL"):
        store.save()
    assert [path.name for path in tmp_path.iterdir()] == ["_KEY_MATERIAL_FOR_x.parquet.json"]


@pytest.mark.spec("encryption.tools.double-wrapping")
def test_caches_belong_to_one_token_and_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("pqext.core.encryption.keytools.wrapping.time.monotonic", lambda: now[0])
    cache: KmsCache[int] = KmsCache()
    made = iter(range(100))

    def get(token: str, name: str, lifetime: float = 10.0) -> int:
        config = KmsConnectionConfig(key_access_token=token)
        return cache.get(config, name, lifetime, lambda: next(made))

    assert [get("s", "x"), get("s", "y"), get("s", "x"), get("t", "x")] == [0, 1, 0, 2]
    now[0] = 9.9
    assert get("s", "x") == 0
    now[0] = 10.1
    assert get("s", "x") == 3
    cache.remove("s")
    assert [get("s", "x"), get("t", "x")] == [4, 5]
    now[0] = 15.2
    assert [get("s", "x"), get("s", "x", 5.0), get("s", "x")] == [4, 6, 6]


@pytest.mark.spec("encryption.tools.material")
def test_key_material_is_the_json_of_other_implementations() -> None:
    seen: list[str] = []
    out = io.BytesIO()
    properties = pyarrow_factory().file_encryption_properties(
        pe.KmsConnectionConfig(), pe.EncryptionConfiguration("kf", column_keys=COLUMNS)
    )
    pq.write_table(TABLE, out, encryption_properties=properties)
    retriever = factory().file_decryption_properties(CONNECTION).key_retriever

    def listening(metadata: bytes) -> bytes:
        seen.append(metadata.decode())
        assert retriever is not None
        return retriever(metadata)

    with pqext.open(
        out.getvalue(), pqext.ReadOptions(decryption=FileDecryption(key_retriever=listening))
    ) as file:
        file.read()
    assert len(seen) == 3
    for text in seen:
        material = parse_metadata(text.encode())
        assert isinstance(material, KeyMaterial)
        assert json.loads(material.serialise(internal=True)) == json.loads(text)
        assert list(json.loads(material.serialise(internal=True))) == list(json.loads(text))
    assert json.loads(serialise_reference("k1")) == {
        "keyMaterialType": "PKMT1", "internalStorage": False, "keyReference": "k1",
    }
    assert parse_metadata(serialise_reference("k1").encode()) == "k1"


def test_key_material_of_more_than_64_mib_is_not_read(tmp_path: Path) -> None:
    size = (64 << 20) + 1
    with open(tmp_path / "_KEY_MATERIAL_FOR_a.parquet.json", "wb") as file:
        file.truncate(size)
    with pytest.raises(EncryptionError, match=f"has {size} bytes"):
        KeyMaterialStore(str(tmp_path / "a.parquet")).load()


@pytest.mark.spec("encryption.tools.material")
@pytest.mark.parametrize("type_", ["PKMT2", "PKMT0", "PKMT", "PKMT10", "pkmt1"])
def test_key_material_of_another_type_is_rejected_even_if_complete(type_: str) -> None:
    material = KeyMaterial(is_footer_key=False, master_key_id="kf", wrapped_dek="eA==").serialise(internal=True)
    assert isinstance(parse_metadata(material.encode()), KeyMaterial)
    with pytest.raises(EncryptionError, match=f"type '{type_}' is unknown"):
        parse_metadata(material.replace("PKMT1", type_).encode())


@pytest.mark.spec("encryption.tools.material")
@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b"5", b"\xff", b"{}", b'{"keyMaterialType":"PKMT2","internalStorage":true}', b"[" * 100_000,
        b'{"keyMaterialType":"PKMT1"}', b'{"keyMaterialType":"PKMT1","internalStorage":false,"keyReference":7}',
        b'{"keyMaterialType":"PKMT1","internalStorage":true,"isFooterKey":false,"doubleWrapping":false}',
    ],
)
def test_invalid_key_material_is_rejected(text: bytes) -> None:
    with pytest.raises(EncryptionError):
        parse_metadata(text)


@pytest.mark.spec("encryption.tools.material")
@pytest.mark.parametrize("double", [False, True])
def test_key_material_that_unwraps_to_an_invalid_key_is_rejected(double: bool) -> None:
    class Careless(KmsClient):
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
            return base64.b64encode(key_bytes).decode()

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            return base64.b64decode(wrapped_key)

    wrapped = base64.b64encode(b"secret").decode()
    material = KeyMaterial(
        is_footer_key=False, master_key_id="m", wrapped_dek=wrapped,
        kek_id=wrapped if double else None, wrapped_kek=wrapped if double else None,
    )
    decryption = CryptoFactory(lambda config: Careless()).file_decryption_properties(CONNECTION)
    assert decryption.key_retriever is not None
    with pytest.raises(EncryptionError, match="an unwrapped key has 6 bytes") as caught:
        decryption.key_retriever(material.serialise(internal=True).encode())
    assert "secret" not in str(caught.value)


@pytest.mark.spec("encryption.tools.wrapping")
def test_locally_wrapped_key_is_nonce_ciphertext_and_tag_in_base64() -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    wrapping = MASTERS["kf"]
    raw = base64.b64decode(wrap_locally(b"k" * 16, wrapping, b"aad"))
    assert len(raw) == 12 + 16 + 16
    assert AESGCM(wrapping).decrypt(raw[:12], raw[12:], b"aad") == b"k" * 16
    for attempt in (
        lambda: unwrap_locally(base64.b64encode(raw).decode(), wrapping, b"other"),
        lambda: unwrap_locally(base64.b64encode(raw[:-1]).decode(), wrapping, b"aad"),
        lambda: unwrap_locally("", wrapping, b"aad"), lambda: unwrap_locally("not base 64!", wrapping, b"aad"),
    ):
        with pytest.raises(EncryptionError):
            attempt()


def test_length_of_a_wrapping_key_is_reported() -> None:
    wrapped = wrap_locally(b"k" * 16, b"w" * 16, b"")
    with pytest.raises(ValueError, match="a wrapping key has 5 bytes; AES keys have 16, 24 or 32"):
        unwrap_locally(wrapped, b"short", b"")


@pytest.mark.spec("encryption.no-key-material")
def test_key_tools_display_no_secrets() -> None:
    connection = KmsConnectionConfig("id", "url", "secret token", {"password": "secret"})
    config = EncryptionConfiguration("kf", column_keys=COLUMNS)
    crypto = factory()
    encryption = crypto.file_encryption_properties(connection, config)
    decryption = crypto.file_decryption_properties(connection)
    for shown in (connection, config, crypto, encryption, decryption, crypto._caches.written_keks):
        assert "secret" not in repr(shown)
    material = KeyMaterial(is_footer_key=False, master_key_id="kf", wrapped_dek="secret", wrapped_kek="secret")
    assert "secret" not in repr(material)


def test_kms_url_is_read_from_a_file_only_if_allowed() -> None:
    config = EncryptionConfiguration("kf", uniform_encryption=True)
    writing = KmsConnectionConfig("instance", "https://kms.example", "token")
    out = io.BytesIO()
    pqext.write_table(TABLE, out, encryption=factory().file_encryption_properties(writing, config))
    for allowed, url in ((False, "DEFAULT"), (True, "https://kms.example")):
        seen: list[KmsConnectionConfig] = []

        def client(connection: KmsConnectionConfig, seen: list[Any] = seen) -> OurClient:
            seen.append(connection)
            return OurClient(connection, MASTERS)

        decryption = CryptoFactory(client).file_decryption_properties(
            KmsConnectionConfig(key_access_token="token"), DecryptionConfiguration(read_kms_url=allowed)
        )
        with pqext.open(out.getvalue(), pqext.ReadOptions(decryption=decryption)) as file:
            assert file.read().equals(TABLE)
        assert [(one.kms_instance_id, one.kms_instance_url, one.key_access_token) for one in seen] == [
            ("instance", url, "token")
        ]


@pytest.mark.parametrize(
    "make",
    [
        lambda: EncryptionConfiguration("kf"),
        lambda: EncryptionConfiguration("kf", column_keys=COLUMNS, uniform_encryption=True),
        lambda: EncryptionConfiguration("kf", uniform_encryption=True, data_key_length_bits=64),
        lambda: EncryptionConfiguration("kf", column_keys={"kc1": "a"}),
        lambda: EncryptionConfiguration("kf", column_keys={"kc1": []}),
        lambda: EncryptionConfiguration("kf", column_keys={"kc1": ["a"], "kc2": ["a"]}),
    ],
)
def test_inconsistent_configurations_are_rejected(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"column|bits"):
        make()


def test_configurations_can_be_pickled() -> None:
    config = EncryptionConfiguration("kf", column_keys=COLUMNS, cache_lifetime=timedelta(seconds=1))
    assert pickle.loads(pickle.dumps(config)) == config
