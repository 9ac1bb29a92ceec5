"""Storage that all workers share; it is accepted for platforms in reuse mode only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny
from pydantic.alias_generators import to_camel

from nni.experiment.config.base import AbsolutePath, ConfigModel, Text
from nni.experiment.errors import ConfigError, Problem


class SharedStorageConfig(ConfigModel):
    """Base of the configurations of shared storage."""

    storage_type: Text
    """Kind of the storage: `NFS` or `AzureBlob`."""
    local_mount_point: AbsolutePath | None = None
    """Folder at which this machine mounts the storage; outside the code directory."""
    remote_mount_point: Text | None = None
    """Folder at which workers mount the storage: absolute, or below the home of their user."""
    local_mounted: Literal["usermount", "nnimount", "nomount"] | None = None
    """Party that mounts the storage on this machine: the user, NNI or none."""

    def problems(self, code_directory: Path) -> Iterator[Problem]:
        """Yield problems of missing fields and of mount points that are not allowed.

        Args:
            code_directory: of the trials.

        Returns:
            Field, rule and value of each one.

        Examples:
            >>> from pathlib import Path
            >>> from nni.experiment import NfsConfig
            >>> next(NfsConfig(local_mounted="nomount").problems(Path())).field
            'sharedStorage.localMountPoint'
        """
        optional = {"storage_account_key", "resource_group_name"}
        for name in type(self).model_fields:
            if name not in optional and getattr(self, name) is None:
                yield Problem(f"sharedStorage.{to_camel(name)}", "is required", None)
        place, code = self.local_mount_point, code_directory.absolute()
        if place is not None and (place == code or code in place.parents):
            rule = "must be outside trialCodeDirectory, which is copied into the storage"
            yield Problem("sharedStorage.localMountPoint", rule, str(place))
        if self.remote_mount_point and ".." in self.remote_mount_point.split("/"):
            rule = "must be a path without '..'"
            yield Problem("sharedStorage.remoteMountPoint", rule, self.remote_mount_point)


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
