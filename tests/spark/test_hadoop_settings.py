"""Storage options from Hadoop settings: what translates, what is said of the rest, and that no secret is told."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.uris import obstore_arguments
from pqext.spark.base.hadoop import add_cluster_settings, find_storage_options

SECRET = "c2VjcmV0LXNlY3JldA=="
ACCOUNT = "acc.dfs.core.windows.net"
URL = f"abfss://box@{ACCOUNT}/t"
PROVIDERS = "org.apache.hadoop.fs.s3a"
OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2"


def options(paths: str | list[str], **settings: str) -> dict[str, Any] | None:
    """What ``settings``, whose names are written with ``__`` for a full stop, mean for ``paths``."""
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return find_storage_options(named.get, [paths] if isinstance(paths, str) else paths)


S3 = {"fs.s3a.access.key": "AKEY", "fs.s3a.secret.key": SECRET}
KEYS = {"access_key": "AKEY", "secret_key": SECRET}


@pytest.mark.spec("spark.hadoop.settings")
@pytest.mark.parametrize(("settings", "found"), [
    ({}, None),
    (S3, KEYS),
    ({**S3, "fs.s3a.session.token": "TOKEN"}, {**KEYS, "session_token": "TOKEN"}),
    ({**S3, "fs.s3a.endpoint": "http://h:1", "fs.s3a.endpoint.region": "eu-x", "fs.s3a.path.style.access": "true"},
     {**KEYS, "endpoint_override": "http://h:1", "region": "eu-x"}),
    ({"fs.s3a.endpoint": "s3.eu-central-1.amazonaws.com"},
     {"endpoint_override": "s3.eu-central-1.amazonaws.com", "region": "eu-central-1"}),
    ({"fs.s3a.endpoint": "https://vpce-1.s3.us-west-2.vpce.amazonaws.com/", "fs.s3a.connection.ssl.enabled": "FALSE"},
     {"endpoint_override": "https://vpce-1.s3.us-west-2.vpce.amazonaws.com/", "region": "us-west-2", "scheme": "http"}),
    ({"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.endpoint.region": "eu-x"},
     {"endpoint_override": "s3.amazonaws.com", "region": "eu-x"}),
    ({**S3, "fs.s3a.session.token": "TOKEN",
      "fs.s3a.aws.credentials.provider": f"{PROVIDERS}.SimpleAWSCredentialsProvider"}, KEYS),
    ({"fs.s3a.endpoint": "h", "fs.s3a.path.style.access": "false", "fs.s3a.connection.ssl.enabled": "false"},
     {"endpoint_override": "h", "force_virtual_addressing": True, "scheme": "http"}),
    ({**S3, "fs.s3a.bucket.b.secret.key": "other", "fs.s3a.bucket.c.access.key": "C"},
     {"access_key": "AKEY", "secret_key": "other"}),
    ({**S3, "fs.s3a.aws.credentials.provider": f"{PROVIDERS}.AnonymousAWSCredentialsProvider"}, {"anonymous": True}),
    ({**S3, "fs.s3a.aws.credentials.provider":
        f"{PROVIDERS}.SimpleAWSCredentialsProvider, {PROVIDERS}.AnonymousAWSCredentialsProvider"}, KEYS),
    ({**S3, "fs.s3a.aws.credentials.provider": f"{PROVIDERS}.auth.IAMInstanceCredentialsProvider"}, None),
])  # fmt: skip
def test_s3_settings_are_translated(settings: dict[str, str], found: dict[str, Any] | None) -> None:
    assert options("s3a://b/t", **settings) == found
    if found:
        locate("s3://b/t", None, {"region": "us-east-1", **found})  # pyarrow takes them


@pytest.mark.spec("spark.hadoop.settings")
@pytest.mark.parametrize(("settings", "found"), [
    ({}, None),
    ({f"fs.azure.account.key.{ACCOUNT}": SECRET}, {"account_key": SECRET}),
    ({f"fs.azure.account.key.{ACCOUNT}": SECRET, f"fs.azure.account.auth.type.{ACCOUNT}": "SAS",
      f"fs.azure.sas.fixed.token.{ACCOUNT}": "?sv=1&sig=x"}, {"sas_token": "sv=1&sig=x"}),
    ({"fs.azure.account.key.other.dfs.core.windows.net": SECRET}, None),
    ({"fs.azure.account.auth.type": "OAuth",
      "fs.azure.account.oauth.provider.type": f"{OAUTH}.ClientCredsTokenProvider",
      "fs.azure.account.oauth2.client.id": "id", "fs.azure.account.oauth2.client.secret": "general",
      f"fs.azure.account.oauth2.client.secret.{ACCOUNT}": SECRET,
      "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token"},
     {"tenant_id": "tenant", "client_id": "id", "client_secret": SECRET}),
    ({"fs.azure.account.auth.type": "OAuth", "fs.azure.account.oauth.provider.type": f"{OAUTH}.MsiTokenProvider",
      "fs.azure.account.oauth2.client.id": "id"}, {"client_id": "id"}),
])  # fmt: skip
def test_azure_settings_are_translated(settings: dict[str, str], found: dict[str, Any] | None) -> None:
    told = options(URL, **settings)
    assert told == (None if found is None else {"account_name": "acc", **found})
    if told:
        arguments, container = obstore_arguments(URL, "abfss", told)
        assert (container, arguments.keys() >= told.keys()) == ("box", True)


@pytest.mark.spec("spark.hadoop.settings")
def test_google_settings_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options("gs://b/t") is None
    assert options("gs://b/t", fs__gs__auth__type="UNAUTHENTICATED") == {"anonymous": True}
    assert options("gs://b/t", fs__gs__auth__type="APPLICATION_DEFAULT") is None
    root = {"fs__gs__storage__root__url": "http://h:1/"}
    assert options("gs://b/t", **root) == {"scheme": "http", "endpoint_override": "h:1"}
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/key.json")
    assert options("gs://b/t", google__cloud__auth__service__account__json__keyfile="/key.json") is None


@pytest.mark.spec("spark.hadoop.untranslated")
@pytest.mark.parametrize(("url", "settings", "words"), [
    ("s3://b/t", {"fs.s3a.aws.credentials.provider": "com.mine.Provider"}, "names Provider, which runs in Java alone"),
    ("s3://b/t", {"fs.s3a.encryption.algorithm": SECRET}, "fs.s3a.encryption.algorithm has no counterpart"),
    ("s3://b/t", {"fs.s3a.bucket.b.security.credential.provider.path": SECRET}, "credential.provider.path has no"),
    (URL, {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.token.provider.type": "com.mine.P"}, "sas with a prov"),
    (URL, {"fs.azure.account.auth.type": "OAuth", "fs.azure.account.oauth2.client.id": "id"}, "type is not set"),
    (URL, {"fs.azure.account.auth.type": "OAuth", "fs.azure.account.oauth2.client.secret": SECRET,
           "fs.azure.account.oauth.provider.type": f"{OAUTH}.ClientCredsTokenProvider"}, "needs id, secret and"),
    ("gs://b/t", {"fs.gs.auth.service.account.json.keyfile": SECRET}, "set GOOGLE_APPLICATION_CREDENTIALS to that fil"),
    ("s3://b/t", {"fs.s3a.aws.credentials.provider": SECRET}, "provider names an invalid name"),
    (URL, {"fs.azure.account.auth.type": "OAuth", "fs.azure.account.oauth.provider.type": SECRET}, "an invalid name"),
    ("gs://b/t", {"fs.gs.auth.type": SECRET + "\x1b[31m"}, "an invalid name has no counterpart"),
    ("gs://b/t", {"fs.gs.auth.type": "USER_CREDENTIALS"}, "USER_CREDENTIALS has no counterpart"),
    ("gs://b/t", {"fs.gs.auth.access.token.provider.impl": SECRET}, "provider.impl has no counterpart"),
])  # fmt: skip
def test_unsupported_setting_is_reported_without_its_value(url: str, settings: dict[str, str], words: str) -> None:
    with pytest.warns(UserWarning, match=words) as told:
        assert options(url, **settings) is None
    assert "storage_options take precedence over" in str(told[0].message)
    assert not [one for one in told if SECRET in str(one.message)]


@pytest.mark.spec("spark.hadoop.untranslated")
def test_paths_with_conflicting_settings_are_rejected() -> None:
    settings = {**S3, "fs.s3a.bucket.b.secret.key": "secret-of-b"}
    assert options(["s3://a/t", "s3://a/u"], **settings) == KEYS
    with pytest.raises(ValueError, match="differ between a, b: read them separately") as refused:
        options(["s3://a/t", "s3a://b/t"], **settings)
    assert SECRET not in str(refused.value)
    assert "secret-of-b" not in str(refused.value)
    with pytest.raises(ValueError, match="differ between a, b: read them separately") as refused:
        options([f"s3://AKEY:{SECRET}/+@a/t", "s3a://b/t"], **settings)
    assert SECRET not in str(refused.value)
    for other in ("gs://a/t", "/local", "hdfs://h/t"):
        with pytest.warns(UserWarning, match="different types of store"):
            assert options(["s3://a/t", other], **settings) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert options(["gs://a/t", "s3://a/t", "/local"]) is None


@pytest.mark.spec("spark.hadoop.files")
def test_data_sources_use_the_cluster_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_HOME", "HADOOP_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "none"))
    url = {"path": "s3a://b/t"}
    assert add_cluster_settings(url) is url
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.s3a.access.key</name><value>OTHER</value></property>"
        f"<property><name> fs.s3a.secret.key </name><value>{SECRET}</value></property></configuration>"
    )
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(
        "# cluster\nspark.master local\nspark.hadoop.fs.s3a.access.key\tAKEY\nspark.hadoop.fs.s3a.endpoint=http://h:1\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    found = {**KEYS, "endpoint_override": "http://h:1"}
    assert json.loads(add_cluster_settings(url)["storage_options"]) == found
    several = add_cluster_settings({"paths": '["s3://b/t", "s3://b/u"]'})
    assert json.loads(several["storage_options"]) == found
    for options in ({**url, "storage_options": "{}"}, {"path": "/local"}, {"path": "https://h/x"}):
        assert add_cluster_settings(options) == options
