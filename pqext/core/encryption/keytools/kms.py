"""What stands between the key tools and a key management service: the client that a user writes, and its address."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

DEFAULT_INSTANCE = "DEFAULT"
"""What key material says where no instance or URL is configured, as parquet-java and Arrow write it."""


class KmsClient(ABC):
    """Wraps keys with master keys that never leave the service. Clients written for pyarrow serve as well."""

    @abstractmethod
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """``key_bytes`` encrypted with a master key, as text."""

    @abstractmethod
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        """The key that :meth:`wrap_key` wrapped. Raises an error of its own where the caller may not have it."""


@dataclass(frozen=True, slots=True)
class KmsConnectionConfig:
    """Which KMS instance to talk to, and as whom; ``custom_kms_conf`` is the client's own."""

    kms_instance_id: str = ""
    kms_instance_url: str = ""
    key_access_token: str = field(default="", repr=False)
    custom_kms_conf: Mapping[str, str] = field(default_factory=dict, repr=False)


KmsClientFactory = Callable[[KmsConnectionConfig], KmsClient]
