"""Storage that all workers share; it is accepted for platforms in reuse mode only."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny

from nni.experiment.config.base import ConfigModel, Text
from nni.experiment.errors import ConfigError, Problem


class SharedStorageConfig(ConfigModel):
    """Base of the kinds of shared storage."""

    storage_type: Text
    local_mount_point: Text | None = None
    """Where this machine mounts it; outside the code directory."""
    remote_mount_point: Text | None = None
    """Where workers mount it."""
    local_mounted: Literal["usermount", "nnimount", "nomount"] | None = None
    """Who mounts it on this machine."""


class NfsConfig(SharedStorageConfig):
    """An NFS export."""

    storage_type: Literal["NFS"] = "NFS"
    nfs_server: Text | None = None
    exported_directory: Text | None = None


class AzureBlobConfig(SharedStorageConfig):
    """A container of Azure Blob storage."""

    storage_type: Literal["AzureBlob"] = "AzureBlob"
    storage_account_name: Text | None = None
    storage_account_key: Text | None = Field(default=None, repr=False)
    resource_group_name: Text | None = None
    container_name: Text | None = None


_KINDS: Final[dict[str, type[SharedStorageConfig]]] = {
    "NFS": NfsConfig,
    "AzureBlob": AzureBlobConfig,
}


def _from_section(section: object) -> object:
    if not isinstance(section, dict):
        return section
    kind = section.get("storageType", section.get("storage_type"))
    if kind not in _KINDS:
        rule = "must be one of " + ", ".join(_KINDS)
        raise ConfigError([Problem("storageType", rule, kind)])
    return _KINDS[kind](**section)


SharedStorage = Annotated[SerializeAsAny[SharedStorageConfig], BeforeValidator(_from_section)]
"""A section of either kind, made from a mapping by its `storageType`."""
