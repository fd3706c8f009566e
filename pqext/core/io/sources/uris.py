"""Map URL schemes and ``storage_options`` to the libraries that open them."""

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
from pqext.core.io.sources.store import Location, Store, get_store
from pqext.core.io.sources.store_errors import collect_secrets, redact_error, redact_uri

if TYPE_CHECKING:
    from obstore.store import HTTPStore

Options = Mapping[str, Any]

_ARROW_CLASSES = {
    "s3": "S3FileSystem", "s3a": "S3FileSystem", "gs": "GcsFileSystem", "gcs": "GcsFileSystem",
    "abfs": "AzureFileSystem", "abfss": "AzureFileSystem", "hdfs": "HadoopFileSystem", "viewfs": "HadoopFileSystem",
}
"""Classes of ``pyarrow.fs`` by scheme."""

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
"""Names that polars, DuckDB, fsspec and obstore use for arguments of pyarrow's classes, without their prefixes."""
_PREFIXES = ("aws_", "google_", "gcs_", "azure_")
_NUMBERS = frozenset({"connect_timeout", "request_timeout", "port", "replication", "buffer_size", "default_block_size"})
"""Names of numeric arguments, which command lines and environments pass as text."""
_HADOOP = (
    "hdfs:// needs Java and Hadoop's libhdfs, which pyarrow did not find: set JAVA_HOME, HADOOP_HOME or "
    "ARROW_LIBHDFS_DIR, and CLASSPATH to the output of `hadoop classpath --glob`; webhdfs:// needs none of these"
)
_GCS_RETRIES = 10
"""Maximum duration of retries by Google's library, in seconds. Its default of 15 minutes is too long."""
_NOT_AN_OPTION = re.compile(r"unexpected keyword argument '(\w+)'")

_CLIENT = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "default_headers",
    "http1_only", "http2_only", "pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "timeout", "user_agent",
})
"""Options of HTTP connections."""
_PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9_~=-][A-Za-z0-9_.~=-]*)+")


def locate_uri(uri: str, scheme: str, options: Options) -> Location | str:
    """Return the location of a URL with this ``scheme``.

    The result is a local path for ``file://`` and ``local://``.
    """
    if scheme == "file":
        return _local_path(uri)
    if scheme == "local":  # a scheme of fsspec
        return uri.partition("://")[2]
    if scheme in ("http", "https"):
        return _locate_web(uri, options)
    if scheme in _ARROW_CLASSES and "::" not in uri:
        return _locate_arrow(uri, scheme, options)
    return _locate_fsspec(uri, scheme, options)


def _local_path(uri: str) -> str:
    uri_parts = split_uri(uri)
    # File URLs have no query.
    parts = uri_parts._replace(path=f"{uri_parts.path}?{uri_parts.query}") if uri_parts.query else uri_parts
    if parts.netloc not in ("", "localhost"):
        raise ValueError(
            f"{excerpt(redact_uri(uri))!r} refers to another machine; for a local file write file:///path"
        )
    path = unquote(parts.path)
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path


def _locate_arrow(uri: str, scheme: str, options: Options) -> Location:
    from pyarrow import fs

    from pqext.core.io.sources.arrow_files import ArrowStore

    name = _ARROW_CLASSES[scheme]
    parts = split_uri(uri)
    secrets = collect_secrets(options) | {text for text in (parts.username, parts.password) if text and len(text) > 3}
    secrets |= collect_secrets([value for key, value in parse_qsl(parts.query) if "key" in key or "token" in key])
    if name == "AzureFileSystem":
        secrets -= {parts.username or ""}
    try:
        if not hasattr(fs, name):
            raise UnsupportedError(
                f"this pyarrow was built without {name}; install another build, or pass filesystem=",
                feature=f"{scheme}://", path=redact_uri(uri),
            )
        if name == "S3FileSystem" and not parts.query and not parts.username:
            # Keys are used verbatim, including percent signs, as in other libraries that read S3.
            path = uri.partition("://")[2]
            bucket = path.partition("/")[0]
            arguments = _arguments(name, options)
            key = ("s3", None if options and not arguments.get("anonymous") else bucket, _freeze(options))

            def make() -> Store:
                if options:
                    return ArrowStore(fs.S3FileSystem(**_with_bucket_defaults(fs, bucket, arguments)), secrets)
                return ArrowStore(fs.FileSystem.from_uri(f"s3://{bucket}")[0], secrets)

            return Location(get_store(key, make), path, redact_uri(uri))
        if options:
            arguments, path = _arguments_of_uri(name, uri, options)
            filesystem = getattr(fs, name)(**arguments)
        else:
            filesystem, path = fs.FileSystem.from_uri(_arrow_uri(uri, name))
    except UnsupportedError:
        raise
    except Exception as error:
        unknown = _NOT_AN_OPTION.search(str(error)) if isinstance(error, TypeError) else None
        if unknown is not None:
            raise ValueError(f"{scheme}:// has no storage option {unknown[1]!r}") from None
        if name == "HadoopFileSystem" and re.search("libhdfs|libjvm", str(error)):
            raise UnsupportedError(_HADOOP, feature=f"{scheme}://", path=redact_uri(uri)) from None
        reason = redact_error(error, secrets)
        if isinstance(error, TypeError) and options:
            others = [f"{name} is {type(value).__name__}" for name, value in options.items() if type(value) is not str]
            types = ", ".join(others)
            reason = f"a storage option has the wrong type ({types}): {reason}"
        raise ValueError(f"{excerpt(redact_uri(uri))!r} cannot be opened: {reason}") from None

    def open_store() -> Store:
        if name == "AzureFileSystem" and not {"account_key", "sas_token"} & _arguments(name, options).keys():
            _check_azure_token(filesystem, path, redact_uri(uri), secrets)
        return ArrowStore(filesystem, secrets)

    return Location(get_store(filesystem, open_store), path, redact_uri(uri))


def _check_azure_token(filesystem: Any, path: str, name: str, secrets: frozenset[str]) -> None:
    """Raise ``PermissionError`` if Azure issues no token. Opening a file without a token would abort the process."""
    try:
        filesystem.get_file_info(path.partition("/")[0] + "/-")  # querying a container would also abort the process
    except Exception as error:
        if "AuthenticationException" in str(error):
            reason = redact_error(str(error).partition("AuthenticationExceptionE: ")[2], secrets)
            advice = "pass account_key or sas_token in storage_options"
            raise PermissionError(13, f"Azure did not issue a token: {reason} ({advice})", name) from None


def _arrow_uri(uri: str, name: str) -> str:
    """Rewrite a URL to the syntax that pyarrow's class ``name`` accepts."""
    parts = split_uri(uri)
    path = parts.path.replace("?", "%3F").replace("#", "%23")
    uri = f"{parts.scheme}://{parts.netloc}{path}{'?' if parts.query else ''}{parts.query}"
    if name == "GcsFileSystem" and not re.search("[?&]retry_limit_seconds=", uri):
        return f"{uri}{'&' if '?' in uri else '?'}retry_limit_seconds={_GCS_RETRIES}"
    return re.sub("^s3a:", "s3:", uri, flags=re.IGNORECASE)


def _arguments_of_uri(name: str, uri: str, options: Options) -> tuple[dict[str, Any], str]:
    """Return the arguments of pyarrow's class ``name`` for a URL and ``options``, and the path in the file system."""
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


def _azure_services(host: str, options: Options) -> dict[str, Any]:
    """Return the addresses of both Azure services for the ``host`` of one service outside the public cloud.

    Otherwise keys would be sent to an account of the same name in the public cloud. Raises ``ValueError`` if the host
    is not an Azure host.
    """
    rest = host[host.find(".") :].lower() if "." in host else ""
    services = ("dfs", "blob")
    if rest in ("", *(f".{service}.core.windows.net" for service in services)) or "blob_storage_authority" in options:
        return {}
    if not re.search(r"\.(dfs|blob)\.", rest):
        advice = "pass blob_storage_authority and dfs_storage_authority as storage_options"
        raise ValueError(f"the host is not an Azure host: {advice}")
    return {
        f"{service}_storage_authority": re.sub(r"\.(dfs|blob)\.", f".{service}.", rest, count=1) for service in services
    }


def _arguments(name: str, options: Options) -> dict[str, Any]:
    """Translate ``options`` to arguments of pyarrow's class ``name``. The class rejects unknown names."""
    arguments: dict[str, Any] = {}
    for key, value in options.items():
        plain = key.lower()
        for prefix in _PREFIXES:
            plain = plain.removeprefix(prefix)
        plain = _ALIASES[name].get(plain, plain)
        if plain == "allow_http":
            if _is_true(value):
                arguments["scheme"] = "http"
            continue
        if isinstance(value, str) and plain in _NUMBERS:
            try:
                value = float(value) if "timeout" in plain else int(value)
            except ValueError:
                raise ValueError(f"storage option {key!r} must be a number") from None
        if plain == "account_key" and not _is_base64(value):  # it would abort the process in Azure's library
            raise ValueError(f"storage option {key!r} is not valid base64")
        arguments[plain] = _is_true(value) if isinstance(value, str) and value.lower() in ("true", "false") else value
    endpoint = arguments.get("endpoint_override")
    if isinstance(endpoint, str) and "://" in endpoint:
        arguments["scheme"], _, arguments["endpoint_override"] = endpoint.rstrip("/").partition("://")
    return arguments


def _with_endpoint(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return ``arguments`` with the endpoint from the environment, unless they already have an endpoint."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if "endpoint_override" in arguments or not endpoint:
        return arguments
    scheme, _, host = endpoint.rstrip("/").rpartition("://")
    return {"scheme": scheme or "https", **arguments, "endpoint_override": host}


def _with_bucket_defaults(fs: Any, bucket: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Add defaults that pyarrow does not apply: the endpoint from the environment and, for anonymous access, the
    bucket's region.
    """
    arguments = _with_endpoint(arguments)
    named = {"region", "endpoint_override"} & arguments.keys()
    if not arguments.get("anonymous") or named or {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys():
        return arguments
    return {**arguments, "region": fs.resolve_s3_region(bucket)}


def s3_arguments(options: Options) -> dict[str, Any]:
    """Translate ``options`` of ``s3://`` URLs to pyarrow's argument names, with the environment's endpoint."""
    return _with_endpoint(_arguments("S3FileSystem", options))


def obstore_arguments(uri: str, scheme: str, options: Options) -> tuple[dict[str, Any], str]:
    """Translate ``options`` of ``gs://`` and ``abfss://`` URLs to obstore's arguments. Return the arguments and the
    bucket.
    """
    name = _ARROW_CLASSES[scheme]
    arguments, path = _arguments_of_uri(name, uri, options)
    renamed = {"access_token": "bearer_token", "anonymous": "skip_signature"}
    own = {"endpoint_override", "scheme", "project_id", "retry_time_limit", "default_bucket_location"}
    own |= {f"{service}_storage_{part}" for service in ("blob", "dfs") for part in ("authority", "scheme")}
    translated = {renamed.get(key, key): value for key, value in arguments.items() if key not in own}
    protocol = arguments.get("blob_storage_scheme" if name == "AzureFileSystem" else "scheme", "https")
    host = arguments.get("blob_storage_authority" if name == "AzureFileSystem" else "endpoint_override")
    if host is not None and name == "AzureFileSystem":
        account = arguments.get("account_name", "")
        address = f"{account}{host}" if host.startswith(".") else f"{host}/{account}"
        translated["endpoint"] = f"{protocol}://{address}"
    elif host is not None:
        translated["base_url"] = f"{protocol}://{host}"
    return {**translated, "client_options": {"allow_http": protocol == "http"}}, path.partition("/")[0]


def _is_base64(value: Any) -> bool:
    try:
        return bool(base64.b64decode(value, validate=True))
    except (ValueError, TypeError):
        return False


def _is_true(value: Any) -> bool:
    return value.lower() == "true" if isinstance(value, str) else bool(value)


def _locate_web(uri: str, options: Options) -> Location:
    if find_spec("obstore") is None:
        if find_spec("fsspec") is not None and find_spec("aiohttp") is not None:
            return _locate_fsspec(uri, "https", options)
        raise UnsupportedError(
            f"{excerpt(redact_uri(uri))!r} needs obstore: pip install 'pqext[remote]'", feature="https://",
            path=redact_uri(uri),
        )
    from pqext.core.io.sources.object_files import ObjectStore

    for name in options.keys() - _CLIENT:
        raise ValueError(f"unknown storage option {name!r}{did_you_mean(name, sorted(_CLIENT))}")
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{excerpt(redact_uri(uri))!r} is not a valid URL: {error}") from None
    if not parts.hostname:
        raise ValueError(f"{excerpt(redact_uri(uri))!r} has no host")
    client = {"allow_http": parts.scheme.lower() == "http", **options}
    headers = options.get("default_headers", {})
    if not isinstance(headers, Mapping):
        raise ValueError(f"storage option 'default_headers' must map names to values, not {type(headers).__name__}")
    client["default_headers"] = {"accept-encoding": "identity", **headers}
    # A URL with a query, or a path that a store might normalise, becomes the root of its own store.
    is_plain = not parts.query and _PLAIN_PATH.fullmatch(parts.path) is not None
    base = uri[: uri.index("/", uri.index("://") + 3)] if is_plain else uri.partition("#")[0]

    hidden = collect_secrets(options) | collect_secrets([value for _, value in parse_qsl(parts.query)])
    hidden |= {text for text in (parts.username, parts.password) if text and len(text) > 3}
    make = partial(_web_store, base, client, uri, tuple(options), hidden)
    key = ("http", base, _freeze(options))
    store = get_store(key, lambda: ObjectStore(make(), hidden, make, redact_uri(base) + ("/" if is_plain else "")))
    return Location(store, parts.path.lstrip("/") if is_plain else "", redact_uri(uri))


def _web_store(
    base: str, client: dict[str, Any], uri: str, options: Sequence[str], secrets: frozenset[str]
) -> HTTPStore:
    """Open the store of a web server. Raises ``ValueError`` that lists the names of the options, but not their values.
    """
    from obstore.store import HTTPStore

    try:
        return HTTPStore.from_url(base, client_options=client, retry_config={"max_retries": 0})  # type: ignore[arg-type]
    except Exception as error:
        with_options = f" with the storage options {', '.join(options)}" if options else ""
        raise ValueError(
            f"{excerpt(redact_uri(uri))!r} cannot be opened{with_options}: {redact_error(error, secrets)}"
        ) from None


def _locate_fsspec(uri: str, scheme: str, options: Options) -> Location:
    if find_spec("fsspec") is None:
        raise UnsupportedError(
            f"{excerpt(redact_uri(uri))!r} is not a local file, and fsspec is not installed; "
            "run pip install 'pqext[remote]', or pass an open binary file",
            feature="remote files", path=redact_uri(uri),
        )
    from fsspec.core import url_to_fs
    from fsspec.registry import known_implementations, registry

    from pqext.core.io.sources.fsspec_files import FsspecStore

    names = {*registry, *known_implementations}
    if scheme not in names:
        hint = did_you_mean(scheme, sorted(names | _ARROW_CLASSES.keys()))
        raise UnsupportedError(
            f"{excerpt(redact_uri(uri))!r} is not a local file, and neither pyarrow nor fsspec supports "
            f"{scheme}://{hint}",
            feature="remote files", path=redact_uri(uri),
        )
    secrets = collect_secrets(options)
    try:
        filesystem, path = url_to_fs(uri, **options)
    except ImportError as error:
        raise UnsupportedError(
            f"{excerpt(redact_uri(uri))!r} cannot be opened: {redact_error(error, secrets)}", feature=f"{scheme}://",
            path=redact_uri(uri),
        ) from None
    except Exception as error:
        raise ValueError(f"{excerpt(redact_uri(uri))!r} cannot be opened: {redact_error(error, secrets)}") from None
    return Location(get_store(filesystem, lambda: FsspecStore(filesystem, secrets)), path, redact_uri(uri))


def _freeze(options: Any) -> Any:
    if isinstance(options, Mapping):
        return tuple(sorted((str(key), repr(_freeze(value))) for key, value in options.items()))
    return options
