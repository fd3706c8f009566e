"""URLs: which library opens which scheme, with which of the ``storage_options``."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.local_paths import split_uri
from pqext.core.base.suggestions import did_you_mean, excerpt
from pqext.core.io.sources.secrets import scrubbed, secrets_of, shown
from pqext.core.io.sources.store import Location, Store, remembered

if TYPE_CHECKING:
    from obstore.store import HTTPStore

Options = Mapping[str, Any]

_OF_ARROW = {"s3": "S3FileSystem", "s3a": "S3FileSystem", "gs": "GcsFileSystem", "gcs": "GcsFileSystem",
             "abfs": "AzureFileSystem", "abfss": "AzureFileSystem", "hdfs": "HadoopFileSystem",
             "viewfs": "HadoopFileSystem"}
"""The schemes that ``pyarrow.fs`` opens, and its classes."""

_S3 = {
    "key": "access_key", "secret": "secret_key", "token": "session_token", "access_key_id": "access_key",
    "secret_access_key": "secret_key", "endpoint": "endpoint_override", "endpoint_url": "endpoint_override",
    "default_region": "region", "anon": "anonymous", "skip_signature": "anonymous",
    "virtual_hosted_style_request": "force_virtual_addressing",
}
_GS = {"token": "access_token", "anon": "anonymous", "skip_signature": "anonymous", "project": "project_id"}
_AZURE = {
    "storage_account_name": "account_name", "storage_account_key": "account_key", "account": "account_name",
    "access_key": "account_key", "key": "account_key", "storage_sas_token": "sas_token",
    "storage_client_id": "client_id", "storage_client_secret": "client_secret", "storage_tenant_id": "tenant_id",
}
_ALIASES = {"S3FileSystem": _S3, "GcsFileSystem": _GS, "AzureFileSystem": _AZURE, "HadoopFileSystem": {}}
"""What polars, DuckDB, fsspec and obstore call the arguments of pyarrow's classes. Prefixes are left out before."""
_PREFIXES = ("aws_", "google_", "gcs_", "azure_")
_NUMBERS = frozenset({"connect_timeout", "request_timeout", "port", "replication", "buffer_size", "default_block_size"})
"""Arguments that are numbers, which command lines and environments have as text."""
_HADOOP = (
    "hdfs:// needs Java and Hadoop's libhdfs, which pyarrow has not found: set JAVA_HOME, HADOOP_HOME or "
    "ARROW_LIBHDFS_DIR, and CLASSPATH to what `hadoop classpath --glob` prints; webhdfs:// needs none of these"
)
_GCS_RETRIES = 10
"""Seconds for which Google's library tries again by itself, which would be 15 minutes where a server is not reached."""
_NOT_AN_OPTION = re.compile(r"unexpected keyword argument '(\w+)'")

_CLIENT = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "default_headers",
    "http1_only", "http2_only", "pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "timeout", "user_agent",
})
"""The options of connections by HTTP."""
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9_~=-][A-Za-z0-9_.~=-]*)+")


def at_uri(uri: str, scheme: str, options: Options) -> Location | str:
    """The place of a URL with this ``scheme``: a path of the local file system for ``file://`` and ``local://``."""
    if scheme == "file":
        return _local_path(uri)
    if scheme == "local":  # as fsspec has it
        return uri.partition("://")[2]
    if scheme in ("http", "https"):
        return _on_web(uri, options)
    if scheme in _OF_ARROW and "::" not in uri:
        return _in_arrow(uri, scheme, options)
    return _in_fsspec(uri, scheme, options)


def _local_path(uri: str) -> str:
    found = split_uri(uri)
    parts = found._replace(path=f"{found.path}?{found.query}") if found.query else found  # files have no options
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"{excerpt(shown(uri))!r} names another machine: a path after file:// has three slashes, file:///...")
    path = unquote(parts.path)
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path


def _in_arrow(uri: str, scheme: str, options: Options) -> Location:
    from pyarrow import fs

    from pqext.core.io.sources.arrow_files import ArrowStore

    name = _OF_ARROW[scheme]
    parts = split_uri(uri)
    given = secrets_of(options) | {text for text in (parts.username, parts.password) if text and len(text) > 3}
    given |= secrets_of([value for key, value in parse_qsl(parts.query) if "key" in key or "token" in key])
    if name == "AzureFileSystem":
        given -= {parts.username or ""}
    try:
        if not hasattr(fs, name):
            raise UnsupportedError(f"this pyarrow was built without {name}", feature=f"{scheme}://", path=shown(uri))
        if name == "S3FileSystem" and not parts.query and not parts.username:
            # Keys are taken as they are, percent signs too, as other libraries that read S3 do.
            path = uri.partition("://")[2]
            bucket = path.partition("/")[0]
            arguments = _arguments(name, options)
            key = ("s3", None if options and not arguments.get("anonymous") else bucket, _frozen(options))

            def make() -> Store:
                if options:
                    return ArrowStore(fs.S3FileSystem(**_of_bucket(fs, bucket, arguments)), given)
                return ArrowStore(fs.FileSystem.from_uri(f"s3://{bucket}")[0], given)

            return Location(remembered(key, make), path, shown(uri))
        if options:
            arguments, path = _of_uri(name, uri, options)
            filesystem = getattr(fs, name)(**arguments)
        else:
            filesystem, path = fs.FileSystem.from_uri(_for_arrow(uri, name))
    except UnsupportedError:
        raise
    except Exception as error:
        unknown = _NOT_AN_OPTION.search(str(error)) if isinstance(error, TypeError) else None
        if unknown is not None:
            raise ValueError(f"{scheme}:// has no storage option {unknown[1]!r}") from None
        if name == "HadoopFileSystem" and re.search("libhdfs|libjvm", str(error)):
            raise UnsupportedError(_HADOOP, feature=f"{scheme}://", path=shown(uri)) from None
        raise ValueError(f"{excerpt(shown(uri))!r} cannot be opened: {scrubbed(error, given)}") from None

    def opened() -> Store:
        if name == "AzureFileSystem" and not {"account_key", "sas_token"} & _arguments(name, options).keys():
            _ask_for_token(filesystem, path, shown(uri), given)
        return ArrowStore(filesystem, given)

    return Location(remembered(filesystem, opened), path, shown(uri))


def _ask_for_token(filesystem: Any, path: str, name: str, secrets: frozenset[str]) -> None:
    """Raise ``PermissionError`` where Azure gives no token: to open a file without one would end the process."""
    try:
        filesystem.get_file_info(path.partition("/")[0] + "/-")  # of a file: of a container it would end, too
    except Exception as error:
        if "AuthenticationException" in str(error):
            why = scrubbed(str(error).partition("AuthenticationExceptionE: ")[2], secrets)
            advice = "account_key, sas_token and others are storage_options"
            raise PermissionError(13, f"Azure gives no token: {why} ({advice})", name) from None


def _for_arrow(uri: str, name: str) -> str:
    """The URL as pyarrow takes it for its class ``name``."""
    parts = split_uri(uri)
    path = parts.path.replace("?", "%3F").replace("#", "%23")
    uri = f"{parts.scheme}://{parts.netloc}{path}{'?' if parts.query else ''}{parts.query}"
    if name == "GcsFileSystem" and not re.search("[?&]retry_limit_seconds=", uri):
        return f"{uri}{'&' if '?' in uri else '?'}retry_limit_seconds={_GCS_RETRIES}"
    return re.sub("^s3a:", "s3:", uri, flags=re.IGNORECASE)


def _of_uri(name: str, uri: str, options: Options) -> tuple[dict[str, Any], str]:
    """What pyarrow's class ``name`` takes for ``options``, and the path in it."""
    parts = split_uri(uri)
    arguments = _arguments(name, options)
    path = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    if name == "GcsFileSystem":
        arguments.setdefault("retry_time_limit", timedelta(seconds=_GCS_RETRIES))
    elif name == "HadoopFileSystem":
        arguments.setdefault("host", parts.hostname or "default")
        arguments.setdefault("port", parts.port or 0)
        path = parts.path
    elif name == "AzureFileSystem" and "@" in parts.netloc:  # container@account.dfs.core.windows.net
        container, _, host = parts.netloc.partition("@")
        arguments = {"account_name": host.partition(".")[0], **_azure_services(host, arguments), **arguments}
        path = f"{container}{parts.path}"
    return arguments, path


def _azure_services(host: str, given: Options) -> dict[str, Any]:
    """Where the two services of an account lie, by the ``host`` of one, where it is not in the public cloud.

    Keys must not go to an account of the same name there. Raises ``ValueError`` for a host that is none of Azure's.
    """
    rest = host[host.find(".") :].lower() if "." in host else ""
    kinds = ("dfs", "blob")
    if rest in ("", *(f".{kind}.core.windows.net" for kind in kinds)) or "blob_storage_authority" in given:
        return {}
    if not re.search(r"\.(dfs|blob)\.", rest):
        advice = "give blob_storage_authority and dfs_storage_authority as storage_options"
        raise ValueError(f"the host is none of Azure's: {advice}")
    return {f"{kind}_storage_authority": re.sub(r"\.(dfs|blob)\.", f".{kind}.", rest, count=1) for kind in kinds}


def _arguments(name: str, options: Options) -> dict[str, Any]:
    """``options`` as arguments of pyarrow's class ``name``, which refuses names that it does not know."""
    found: dict[str, Any] = {}
    for key, value in options.items():
        plain = key.lower()
        for prefix in _PREFIXES:
            plain = plain.removeprefix(prefix)
        plain = _ALIASES[name].get(plain, plain)
        if plain == "allow_http":
            if _is_true(value):
                found["scheme"] = "http"
            continue
        if isinstance(value, str) and plain in _NUMBERS:
            try:
                value = float(value) if "timeout" in plain else int(value)
            except ValueError:
                raise ValueError(f"storage option {key!r} is a number") from None
        if plain == "account_key" and not _is_base64(value):  # which would end the process within Azure's library
            raise ValueError(f"storage option {key!r} is not base64")
        found[plain] = _is_true(value) if isinstance(value, str) and value.lower() in ("true", "false") else value
    endpoint = found.get("endpoint_override")
    if isinstance(endpoint, str) and "://" in endpoint:
        found["scheme"], _, found["endpoint_override"] = endpoint.rstrip("/").partition("://")
    return found


def _of_bucket(fs: Any, bucket: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """``arguments`` with what pyarrow takes from elsewhere only where it is given none: the endpoint from the
    environment, and for anonymous readers the region that Amazon tells of the bucket.
    """
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if "endpoint_override" not in arguments and endpoint:
        scheme, _, host = endpoint.rstrip("/").rpartition("://")
        return {"scheme": scheme or "https", **arguments, "endpoint_override": host}
    named = {"region", "endpoint_override"} & arguments.keys()
    if not arguments.get("anonymous") or named or {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys():
        return arguments
    return {**arguments, "region": fs.resolve_s3_region(bucket)}


def s3_arguments(options: Options) -> dict[str, Any]:
    """``options`` of ``s3://`` URLs by the names of pyarrow's arguments, with what only the environment says."""
    found = _arguments("S3FileSystem", options)
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if "endpoint_override" not in found and endpoint:
        scheme, _, host = endpoint.rstrip("/").rpartition("://")
        return {"scheme": scheme or "https", **found, "endpoint_override": host}
    return found


def obstore_arguments(uri: str, scheme: str, options: Options) -> tuple[dict[str, Any], str]:
    """``options`` of ``gs://`` and ``abfss://`` URLs as arguments of obstore's stores, and the bucket or container."""
    name = _OF_ARROW[scheme]
    arguments, path = _of_uri(name, uri, options)
    renamed = {"access_token": "bearer_token", "anonymous": "skip_signature"}
    own = {"endpoint_override", "scheme", "project_id", "retry_time_limit", "default_bucket_location"}
    own |= {f"{kind}_storage_{part}" for kind in ("blob", "dfs") for part in ("authority", "scheme")}
    found = {renamed.get(key, key): value for key, value in arguments.items() if key not in own}
    protocol = arguments.get("blob_storage_scheme" if name == "AzureFileSystem" else "scheme", "https")
    host = arguments.get("blob_storage_authority" if name == "AzureFileSystem" else "endpoint_override")
    if host is not None and name == "AzureFileSystem":
        account = arguments.get("account_name", "")
        found["endpoint"] = f"{protocol}://{account}{host}" if host.startswith(".") else f"{protocol}://{host}/{account}"
    elif host is not None:
        found["base_url"] = f"{protocol}://{host}"
    return {**found, "client_options": {"allow_http": protocol == "http"}}, path.partition("/")[0]


def _is_base64(value: Any) -> bool:
    try:
        return bool(base64.b64decode(value, validate=True))
    except (ValueError, TypeError):
        return False


def _is_true(value: Any) -> bool:
    return value.lower() == "true" if isinstance(value, str) else bool(value)


def _on_web(uri: str, options: Options) -> Location:
    if find_spec("obstore") is None:
        if find_spec("fsspec") is not None and find_spec("aiohttp") is not None:
            return _in_fsspec(uri, "https", options)
        raise UnsupportedError(
            f"{excerpt(shown(uri))!r} needs obstore: pip install 'pqext[remote]'", feature="https://", path=shown(uri)
        )
    from pqext.core.io.sources.object_files import ObjectStore

    for name in options.keys() - _CLIENT:
        raise ValueError(f"there is no storage option {name!r}{did_you_mean(name, sorted(_CLIENT))}")
    parts = urlsplit(uri)
    if not parts.hostname:
        raise ValueError(f"{excerpt(shown(uri))!r} names no host")
    client = {"allow_http": parts.scheme.lower() == "http", **options}
    headers = options.get("default_headers", {})
    if not isinstance(headers, Mapping):
        raise ValueError(f"storage option 'default_headers' maps names to values, it is not a {type(headers).__name__}")
    client["default_headers"] = {"accept-encoding": "identity", **headers}
    # A path that a store might write otherwise, or one with a query, is the whole URL of a store of its own.
    is_plain = not parts.query and _PLAIN_PATH.fullmatch(parts.path) is not None
    base = uri[: uri.index("/", uri.index("://") + 3)] if is_plain else uri.partition("#")[0]

    hidden = secrets_of(options) | secrets_of([value for _, value in parse_qsl(parts.query)])
    hidden |= {text for text in (parts.username, parts.password) if text and len(text) > 3}
    make = partial(_web_store, base, client, uri, tuple(options), hidden)
    key = ("http", base, _frozen(options))
    store = remembered(key, lambda: ObjectStore(make(), hidden, make, shown(base) + ("/" if is_plain else "")))
    return Location(store, parts.path.lstrip("/") if is_plain else "", shown(uri))


def _web_store(
    base: str, client: dict[str, Any], uri: str, options: Sequence[str], hidden: frozenset[str]
) -> HTTPStore:
    """The store of a web server. Raises ``ValueError`` with the names of the options, not their values."""
    from obstore.store import HTTPStore

    try:
        return HTTPStore.from_url(base, client_options=client, retry_config={"max_retries": 0})  # type: ignore[arg-type]
    except Exception as error:
        given = f" with the storage options {', '.join(options)}" if options else ""
        raise ValueError(f"{excerpt(shown(uri))!r} cannot be opened{given}: {scrubbed(error, hidden)}") from None


def _in_fsspec(uri: str, scheme: str, options: Options) -> Location:
    if find_spec("fsspec") is None:
        raise UnsupportedError(
            f"{excerpt(shown(uri))!r} is no local file; fsspec opens many other places: pip install 'pqext[remote]', "
            "or give an open binary file",
            feature="remote files", path=shown(uri),
        )
    from fsspec.core import url_to_fs
    from fsspec.registry import known_implementations, registry

    from pqext.core.io.sources.fsspec_files import FsspecStore

    names = {*registry, *known_implementations}
    if scheme not in names:
        meant = did_you_mean(scheme, sorted(names | _OF_ARROW.keys()))
        raise UnsupportedError(
            f"{excerpt(shown(uri))!r} is no local file, and neither pyarrow nor fsspec knows {scheme}://{meant}",
            feature="remote files", path=shown(uri),
        )
    given = secrets_of(options)
    try:
        filesystem, path = url_to_fs(uri, **options)
    except ImportError as error:
        raise UnsupportedError(
            f"{excerpt(shown(uri))!r} cannot be opened: {scrubbed(error, given)}", feature=f"{scheme}://",
            path=shown(uri),
        ) from None
    except Exception as error:
        raise ValueError(f"{excerpt(shown(uri))!r} cannot be opened: {scrubbed(error, given)}") from None
    return Location(remembered(filesystem, lambda: FsspecStore(filesystem, given)), path, shown(uri))


def _frozen(options: Any) -> Any:
    if isinstance(options, Mapping):
        return tuple(sorted((str(key), repr(_frozen(value))) for key, value in options.items()))
    return options
