"""Storage options that Spark's Hadoop settings stand for, so that a cluster's credentials need not be given twice."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pqext.core.base.local_paths import scheme_of
from pqext.core.io.sources.store_errors import redact_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Setting = Callable[[str], str | None]

_S3A = {
    "access.key": "access_key", "secret.key": "secret_key", "session.token": "session_token",
    "endpoint": "endpoint_override", "endpoint.region": "region",
}  # fmt: skip
_KEYS = ("access_key", "secret_key", "session_token")
_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_WITH_TOKEN = "TemporaryAWSCredentialsProvider"
_WITH_KEYS = frozenset({"SimpleAWSCredentialsProvider", _WITH_TOKEN})
_BY_ENVIRONMENT = frozenset({
    "EnvironmentVariableCredentialsProvider", "DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider",
    "IAMInstanceCredentialsProvider", "InstanceProfileCredentialsProvider", "ContainerCredentialsProvider",
    "EC2ContainerCredentialsProviderWrapper", "WebIdentityTokenCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider", "ProfileCredentialsProvider",
})  # fmt: skip
"""Hadoop's names of providers that look where the libraries of S3 look by themselves."""
_S3A_UNKNOWN = (
    "security.credential.provider.path", "encryption.algorithm", "server-side-encryption-algorithm",
    "proxy.host", "assumed.role.arn",
)
_REGION = re.compile(r"(?:^|[./])s3[.-](?:dualstack\.)?([a-z]+(?:-[a-z]+)+-\d+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$")
"""A region in the name of an endpoint of Amazon's."""
_AZURE = re.compile(r"abfss?://[^@/]+@(([^./]+)\.[^/]+)", re.IGNORECASE)
_TENANT = re.compile(r"https://login\.microsoftonline\.com/([^/]+)/", re.IGNORECASE)
_KEY_FILES = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
_GS_BY_ENVIRONMENT = frozenset({"COMPUTE_ENGINE", "APPLICATION_DEFAULT"})
_GS_UNKNOWN = (
    "fs.gs.auth.service.account.private.key", "fs.gs.auth.refresh.token", "fs.gs.auth.access.token.provider.impl",
    "fs.gs.auth.impersonation.service.account", "fs.gs.encryption.key",
)


def from_hadoop(spark: SparkSession, paths: str | Sequence[str]) -> dict[str, Any] | None:
    """What the session's settings ``fs.s3a.*``, ``fs.azure.*`` and ``fs.gs.*`` say of the store of ``paths``.

    None where they say nothing. Settings of a bucket (``fs.s3a.bucket.NAME.*``) or of an account go before those of
    all. Settings with no counterpart, and those of stores of several kinds at once, are named in a warning.

    Raises ``ValueError`` for paths of buckets or accounts whose settings differ.
    """

    def setting(name: str) -> str | None:
        """``name`` as the session has it, else as the context was started with it."""
        return spark.conf.get(name, None) or spark.conf.get(f"spark.hadoop.{name}", None) or None

    return storage_options_of(setting, [paths] if isinstance(paths, str) else list(paths))


def storage_options_of(setting: Setting, paths: Sequence[str]) -> dict[str, Any] | None:
    """:func:`from_hadoop` with a function that gives the value of a setting, or None."""
    places = {place for place in map(_place, paths) if place is not None}
    found = {place: _OF_STORE[place[0]](setting, place[1]) for place in sorted(places)}
    if not any(found.values()):
        return None
    kinds = {kind for kind, _ in places}
    if len(kinds) > 1 or len(places) == 0 or any(_place(path) is None for path in paths):
        _warn("Hadoop settings are not used for paths in stores of several kinds")
        return None
    first, *others = found.values()
    if any(one != first for one in others):
        names = ", ".join(name for _, name in found)
        raise ValueError(f"Hadoop settings differ between {names}: read them apart, or pass storage_options")
    return first


def _place(path: str) -> tuple[str, str] | None:
    """The kind of store of ``path``, and the bucket or account whose settings count."""
    scheme = scheme_of(path)
    if scheme in ("s3", "s3a"):
        return "s3", redact_uri(path).split("/")[2]  # without keys
    if scheme in ("gs", "gcs"):
        return "gs", ""
    match = _AZURE.match(path) if scheme in ("abfs", "abfss") else None
    return None if match is None else ("azure", match[1])


def _of_s3(setting: Setting, bucket: str) -> dict[str, Any]:
    def one(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}")

    found: dict[str, Any] = {option: value for name, option in _S3A.items() if (value := one(name))}
    region = _REGION.search(found.get("endpoint_override", "").rstrip("/"))
    if region is not None:
        found.setdefault("region", region[1])  # as Hadoop does, where pyarrow takes Virginia
    if _is_off(one("connection.ssl.enabled")):
        found["scheme"] = "http"
    if "endpoint_override" in found and _is_off(one("path.style.access")):
        found["force_virtual_addressing"] = True
    for name in _S3A_UNKNOWN:
        if one(name):
            _warn(f"the Hadoop setting fs.s3a.{name} has no counterpart and is not used")
    named = one("aws.credentials.provider") or ""
    providers = [name.rpartition(".")[2] for name in map(str.strip, named.split(",")) if name]
    for provider in providers:
        if provider not in {_ANONYMOUS, *_WITH_KEYS, *_BY_ENVIRONMENT}:
            _warn(f"fs.s3a.aws.credentials.provider names {_told(provider)}, which runs in Java alone and is not used")
    if providers and not _WITH_KEYS & {*providers}:
        found = {option: value for option, value in found.items() if option not in _KEYS}
    elif providers and _WITH_TOKEN not in providers:
        found.pop("session_token", None)
    if _ANONYMOUS in providers and not {*_KEYS} & found.keys():
        found["anonymous"] = True
    return found


def _is_off(value: str | None) -> bool:
    return value is not None and value.strip().lower() == "false"


def _of_azure(setting: Setting, host: str) -> dict[str, Any]:
    def one(name: str) -> str | None:
        return setting(f"fs.azure.{name}.{host}") or setting(f"fs.azure.{name}")

    key, token = one("account.key"), one("sas.fixed.token")
    kind = (one("account.auth.type") or ("SAS" if token and not key else "SharedKey")).lower()
    found: dict[str, Any] = {}
    if kind == "sharedkey" and key:
        found = {"account_key": key}
    elif kind == "sas" and token:
        found = {"sas_token": token.removeprefix("?")}
    elif kind == "oauth":
        found = _oauth(one)
    elif kind != "sharedkey":
        _warn(f"fs.azure.account.auth.type is {_told(kind)} with a provider that runs in Java alone and is not used")
    return {"account_name": host.partition(".")[0], **found} if found else {}


def _oauth(one: Setting) -> dict[str, Any]:
    """Options of Azure for ``fs.azure.account.auth.type`` OAuth."""
    provider = (one("account.oauth.provider.type") or "").rpartition(".")[2]
    client = one("account.oauth2.client.id")
    if provider == "ClientCredsTokenProvider":
        tenant = _TENANT.match(one("account.oauth2.client.endpoint") or "")
        secret = one("account.oauth2.client.secret")
        if tenant is not None and client and secret:
            return {"tenant_id": tenant[1], "client_id": client, "client_secret": secret}
        _warn(
            "fs.azure.account.oauth2.client.* is not used: it needs id, secret and an endpoint of "
            "https://login.microsoftonline.com/TENANT/"
        )
    elif provider == "MsiTokenProvider":
        return {"client_id": client} if client else {}
    elif provider != "WorkloadIdentityTokenProvider":
        named = f"names {_told(provider)}, which runs in Java alone" if provider else "is not set"
        _warn(f"fs.azure.account.oauth.provider.type {named}: OAuth is not used")
    return {}


def _of_google(setting: Setting, bucket: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    kind = (setting("fs.gs.auth.type") or "").upper()
    nulls = (setting("fs.gs.auth.null.enable"), setting("google.cloud.auth.null.enable"))
    if kind == "UNAUTHENTICATED" or (not kind and "true" in nulls):
        found["anonymous"] = True
    elif kind not in _GS_BY_ENVIRONMENT:
        for name in _KEY_FILES:
            file = setting(name)
            if file and file != os.environ.get("GOOGLE_APPLICATION_CREDENTIALS"):
                _warn(
                    f"the Hadoop setting {name} has no counterpart: set GOOGLE_APPLICATION_CREDENTIALS to that file on "
                    "the driver, and by spark.executorEnv.GOOGLE_APPLICATION_CREDENTIALS on executors"
                )
        for name in _GS_UNKNOWN:
            if setting(name):
                _warn(f"the Hadoop setting {name} has no counterpart and is not used")
        if kind not in ("", "SERVICE_ACCOUNT_JSON_KEYFILE"):
            _warn(f"fs.gs.auth.type {_told(kind)} has no counterpart and is not used")
    root = (setting("fs.gs.storage.root.url") or "").rstrip("/")
    if root:
        found["scheme"], _, found["endpoint_override"] = root.rpartition("://")
        found["scheme"] = found["scheme"] or "https"
    return found


_OF_STORE: dict[str, Callable[[Setting, str], dict[str, Any]]] = {"s3": _of_s3, "azure": _of_azure, "gs": _of_google}


def _told(name: object) -> str:
    """What a setting names, where it looks like a name and not like something that was put there by mistake."""
    text = str(name)
    return text if _NAME.fullmatch(text) else "what is no name"


_NAME = re.compile(r"[A-Za-z_$]{1,80}[0-9]{0,2}(\.[A-Za-z_$]{1,80}[0-9]{0,2}){0,12}", re.ASCII)
"""The name of a class, or a word. Keys have digits among their letters, and signs."""


def _warn(what: str) -> None:
    warnings.warn(f"{what} (storage_options go before Hadoop settings, the environment after them)", stacklevel=6)
