"""Storage that all workers share; it is accepted for platforms in reuse mode only."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny

from nni.experiment.config.base import ConfigModel, Text
from nni.experiment.errors import ConfigError, Problem


class SharedStorageConfig(ConfigModel):
    """Base of the configurations of shared storage."""

    storage_type: Text
    """Kind of the storage: `NFS` or `AzureBlob`."""
    local_mount_point: Text | None = None
    """Folder at which this machine mounts the storage; outside the code directory."""
    remote_mount_point: Text | None = None
    """Folder at which workers mount the storage."""
    local_mounted: Literal["usermount", "nnimount", "nomount"] | None = None
    """Party that mounts the storage on this machine: the user, NNI or none."""


class NfsConfig(SharedStorageConfig):
    """Configuration of an NFS export as shared storage.

    Examples:
        >>> from nni.experiment import NfsConfig
        >>> NfsConfig(nfs_server="10.0.0.9", exported_directory="/data").storage_type
        'NFS'
    """

    storage_type: Literal["NFS"] = "NFS"
    nfs_server: Text | None = None
    """Name or IP address of the server."""
    exported_directory: Text | None = None
    """Folder that the server exports."""


class AzureBlobConfig(SharedStorageConfig):
    """Configuration of a container of Azure Blob storage as shared storage.

    Examples:
        >>> from nni.experiment import AzureBlobConfig
        >>> AzureBlobConfig(storage_account_name="tuning", container_name="trials").storage_type
        'AzureBlob'
    """

    storage_type: Literal["AzureBlob"] = "AzureBlob"
    storage_account_name: Text | None = None
    """Name of the storage account."""
    storage_account_key: Text | None = Field(default=None, repr=False)
    """Key of the storage account."""
    resource_group_name: Text | None = None
    """Resource group of the storage account."""
    container_name: Text | None = None
    """Name of the container."""


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
