"""Storage options from the Hadoop settings of a Spark session or cluster.

Spark passes no settings of its session to a Python data source. The data source reads the driver's
``spark-defaults.conf`` and ``core-site.xml`` instead.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from pqext.core.base.local_paths import scheme_of
from pqext.core.io.sources.store_errors import redact_uri
from pqext.spark.base.files import is_remote

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
"""Hadoop credential providers that S3 libraries implement by default."""
_S3A_UNKNOWN = (
    "security.credential.provider.path", "encryption.algorithm", "server-side-encryption-algorithm",
    "proxy.host", "assumed.role.arn",
)
_REGION = re.compile(r"(?:^|[./])s3[.-](?:dualstack\.)?([a-z]+(?:-[a-z]+)+-\d+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$")
"""Region in the host name of an AWS endpoint."""
_PREFIX = "spark.hadoop."
_AZURE = re.compile(r"abfss?://[^@/]+@(([^./]+)\.[^/]+)", re.IGNORECASE)
_TENANT = re.compile(r"https://login\.microsoftonline\.com/([^/]+)/", re.IGNORECASE)
_KEY_FILES = ("fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile")
_GS_BY_ENVIRONMENT = frozenset({"COMPUTE_ENGINE", "APPLICATION_DEFAULT"})
_GS_UNKNOWN = (
    "fs.gs.auth.service.account.private.key", "fs.gs.auth.refresh.token", "fs.gs.auth.access.token.provider.impl",
    "fs.gs.auth.impersonation.service.account", "fs.gs.encryption.key",
)


def read_hadoop_options(spark: SparkSession, paths: str | Sequence[str]) -> dict[str, Any] | None:
    """Return the storage options for ``paths`` from the settings ``fs.s3a.*``, ``fs.azure.*`` and ``fs.gs.*``.

    Settings of a bucket (``fs.s3a.bucket.NAME.*``) or of an account take precedence over general ones. A warning
    reports settings without a counterpart, and paths in different types of store.

    Returns:
        The storage options; None if no setting applies.

    Raises:
        ValueError: If the settings of the paths' buckets or accounts differ.
    """

    def setting(name: str) -> str | None:
        return spark.conf.get(name, None) or spark.conf.get(f"spark.hadoop.{name}", None) or None

    return find_storage_options(setting, [paths] if isinstance(paths, str) else list(paths))


def storage_options_text(storage_options: Mapping[str, Any]) -> str:
    """Convert storage options to JSON text. Raises the errors of :func:`check_storage_options`."""
    return json.dumps(check_storage_options(storage_options))


def check_storage_options(storage_options: Mapping[str, Any]) -> dict[str, Any]:
    """Check storage options, and return a copy without None values.

    Raises ``TypeError`` for a value that is not text, a number or a boolean. The message omits the value, which may be
    a secret.
    """
    if not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options must map names to values, not {type(storage_options).__name__}")
    storage_options = {name: value for name, value in storage_options.items() if value is not None}
    for name, value in storage_options.items():
        if not isinstance(name, str):
            raise TypeError(f"storage_options must have names of type str, not {type(name).__name__}")
        if not isinstance(value, str | bool | int | float):
            raise TypeError(f"storage_options {name} must be text, a number or a boolean, not {type(value).__name__}")
    return storage_options


def find_storage_options(setting: Setting, paths: Sequence[str]) -> dict[str, Any] | None:
    """Return the storage options for ``paths``, using ``setting`` to look up Hadoop settings."""
    stores = {store for store in map(_parse_store, paths) if store is not None}
    options = {store: _OPTIONS_OF[store[0]](setting, store[1]) for store in sorted(stores)}
    if not any(options.values()):
        return None
    if len({type for type, _ in stores}) > 1 or not stores or any(_parse_store(path) is None for path in paths):
        _warn("Hadoop settings are not used for paths in different types of store")
        return None
    first, *others = options.values()
    if any(other != first for other in others):
        names = ", ".join(name for _, name in options)
        raise ValueError(f"Hadoop settings differ between {names}: read them separately, or pass storage_options")
    return first


def _parse_store(path: str) -> tuple[str, str] | None:
    """Return the store type of ``path`` and the bucket or account with settings; None for other paths."""
    scheme = scheme_of(path)
    if scheme in ("s3", "s3a"):
        return "s3", redact_uri(path).split("/")[2]  # without credentials in the URL
    if scheme in ("gs", "gcs"):
        return "gs", ""
    match = _AZURE.match(path) if scheme in ("abfs", "abfss") else None
    return None if match is None else ("azure", match[1])


def _s3_options(setting: Setting, bucket: str) -> dict[str, Any]:
    def get_value(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}")

    options: dict[str, Any] = {option: value for name, option in _S3A.items() if (value := get_value(name))}
    region = _REGION.search(options.get("endpoint_override", "").rstrip("/"))
    if region is not None:
        options.setdefault("region", region[1])  # as in Hadoop; pyarrow would default to us-east-1
    if _is_false(get_value("connection.ssl.enabled")):
        options["scheme"] = "http"
    if "endpoint_override" in options and _is_false(get_value("path.style.access")):
        options["force_virtual_addressing"] = True
    for name in _S3A_UNKNOWN:
        if get_value(name):
            _warn(f"the Hadoop setting fs.s3a.{name} has no counterpart and is not used")
    classes = get_value("aws.credentials.provider") or ""
    providers = [name.rpartition(".")[2] for name in map(str.strip, classes.split(",")) if name]
    for provider in providers:
        if provider not in {_ANONYMOUS, *_WITH_KEYS, *_BY_ENVIRONMENT}:
            name = _display_value(provider)
            _warn(f"fs.s3a.aws.credentials.provider names {name}, which runs in Java alone and is not used")
    if providers and not _WITH_KEYS & {*providers}:
        options = {name: value for name, value in options.items() if name not in _KEYS}
    elif providers and _WITH_TOKEN not in providers:
        options.pop("session_token", None)
    if _ANONYMOUS in providers and not {*_KEYS} & options.keys():
        options["anonymous"] = True
    return options


def _is_false(value: str | None) -> bool:
    return value is not None and value.strip().lower() == "false"


def _azure_options(setting: Setting, host: str) -> dict[str, Any]:
    def get_value(name: str) -> str | None:
        return setting(f"fs.azure.{name}.{host}") or setting(f"fs.azure.{name}")

    key, token = get_value("account.key"), get_value("sas.fixed.token")
    auth_type = (get_value("account.auth.type") or ("SAS" if token and not key else "SharedKey")).lower()
    options: dict[str, Any] = {}
    if auth_type == "sharedkey" and key:
        options = {"account_key": key}
    elif auth_type == "sas" and token:
        options = {"sas_token": token.removeprefix("?")}
    elif auth_type == "oauth":
        options = _oauth_options(get_value)
    elif auth_type != "sharedkey":
        name = _display_value(auth_type)
        _warn(f"fs.azure.account.auth.type is {name} with a provider that runs in Java alone and is not used")
    return {"account_name": host.partition(".")[0], **options} if options else {}


def _oauth_options(get_value: Setting) -> dict[str, Any]:
    """Return Azure's storage options for ``fs.azure.account.auth.type`` OAuth."""
    provider = (get_value("account.oauth.provider.type") or "").rpartition(".")[2]
    client = get_value("account.oauth2.client.id")
    if provider == "ClientCredsTokenProvider":
        tenant = _TENANT.match(get_value("account.oauth2.client.endpoint") or "")
        secret = get_value("account.oauth2.client.secret")
        if tenant is not None and client and secret:
            return {"tenant_id": tenant[1], "client_id": client, "client_secret": secret}
        _warn(
            "fs.azure.account.oauth2.client.* is not used: it needs id, secret and an endpoint of "
            "https://login.microsoftonline.com/TENANT/"
        )
    elif provider == "MsiTokenProvider":
        return {"client_id": client} if client else {}
    elif provider != "WorkloadIdentityTokenProvider":
        reason = f"names {_display_value(provider)}, which runs in Java alone" if provider else "is not set"
        _warn(f"fs.azure.account.oauth.provider.type {reason}: OAuth is not used")
    return {}


def _google_options(setting: Setting, bucket: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    auth_type = (setting("fs.gs.auth.type") or "").upper()
    nulls = (setting("fs.gs.auth.null.enable"), setting("google.cloud.auth.null.enable"))
    if auth_type == "UNAUTHENTICATED" or (not auth_type and "true" in nulls):
        options["anonymous"] = True
    elif auth_type not in _GS_BY_ENVIRONMENT:
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
        if auth_type not in ("", "SERVICE_ACCOUNT_JSON_KEYFILE"):
            _warn(f"fs.gs.auth.type {_display_value(auth_type)} has no counterpart and is not used")
    root = (setting("fs.gs.storage.root.url") or "").rstrip("/")
    if root:
        options["scheme"], _, options["endpoint_override"] = root.rpartition("://")
        options["scheme"] = options["scheme"] or "https"
    return options


_OPTIONS_OF: dict[str, Callable[[Setting, str], dict[str, Any]]] = {
    "s3": _s3_options, "azure": _azure_options, "gs": _google_options,
}  # fmt: skip


def _display_value(name: object) -> str:
    """Return the value of a setting for a message, or a placeholder if it may be a secret entered by mistake."""
    text = str(name)
    return text if _NAME.fullmatch(text) else "an invalid name"


_NAME = re.compile(r"[A-Za-z_$]{1,80}[0-9]{0,2}(\.[A-Za-z_$]{1,80}[0-9]{0,2}){0,12}", re.ASCII)
"""Name of a class, or a word. Secret keys mix letters with digits and punctuation."""


def _warn(problem: str) -> None:
    advice = "storage_options take precedence over Hadoop settings, and Hadoop settings over the environment"
    warnings.warn(f"{problem} ({advice})", stacklevel=6)


def add_cluster_settings(options: MutableMapping[str, str]) -> MutableMapping[str, str]:
    """Return the options of a data source, with ``storage_options`` from the cluster's configuration files.

    Spark's file takes precedence over Hadoop's, and ``storage_options`` of the data source over both. Raises
    ``ValueError`` like :func:`read_hadoop_options`.
    """
    paths = json.loads(options["paths"]) if "paths" in options else [options["path"]] if "path" in options else []
    if "storage_options" in options or not any(map(is_remote, paths)):
        return options
    settings = _hadoop_settings() | _spark_settings()
    storage_options = find_storage_options(settings.get, paths)
    if storage_options is None:
        return options
    completed = copy(options)
    completed["storage_options"] = json.dumps(storage_options)
    return completed


def _spark_settings() -> dict[str, str]:
    home = os.environ.get("SPARK_HOME", "")
    folder = os.environ.get("SPARK_CONF_DIR") or (os.path.join(home, "conf") if home else "")
    settings = {}
    for line in _read_text(folder, "spark-defaults.conf").splitlines():
        name, _, value = line.strip().replace("=", " ", 1).replace("\t", " ").partition(" ")
        if name.startswith(_PREFIX):
            settings[name.removeprefix(_PREFIX)] = value.strip()
    return settings


def _hadoop_settings() -> dict[str, str]:
    home = os.environ.get("HADOOP_HOME", "")
    folder = os.environ.get("HADOOP_CONF_DIR") or (os.path.join(home, "etc", "hadoop") if home else "")
    text = _read_text(folder, "core-site.xml")
    if not text:
        return {}
    try:
        properties = ElementTree.fromstring(text).iter("property")
    except ElementTree.ParseError:
        return {}  # Hadoop reports the error
    settings = {item.findtext("name", "").strip(): item.findtext("value", "").strip() for item in properties}
    return {name: value for name, value in settings.items() if name.startswith("fs.")}


def _read_text(folder: str, name: str) -> str:
    if folder:
        with suppress(OSError, UnicodeError):
            return Path(folder, name).read_text("utf-8")
    return ""
