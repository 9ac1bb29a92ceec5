"""Storage that an experiment's manager and agents mount: its settings, and the commands for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeVar

from svc_common.errors import InvalidArgumentError

OPTION: Final = "sharedStorage"
"""Option of a platform that holds the settings; the same in all platforms of an experiment."""
MARK_OPTION: Final = "mark"
"""Key of the settings that the manager adds: the content of the mark that it has written."""
KEY_OPTION: Final = "storageAccountKey"
ROOT: Final = "nni"
"""Folder of all experiments in the storage."""
OUTPUT_FOLDER: Final = "nnioutput"
"""Folder of the outputs of a trial, in the folder of the trial."""
MARK_FILE: Final = "storage-mark"
"""File in the folder of an experiment: it proves to a worker that its mount is the storage that the
manager sees."""
_LIMIT_CHARACTERS: Final = 4096
_Member = TypeVar("_Member", bound=StrEnum)


class StorageKind(StrEnum):
    """Kind of storage that is mounted: by NFS, or Azure Blob by blobfuse2."""

    NFS = "NFS"
    AZURE_BLOB = "AzureBlob"


class LocalMount(StrEnum):
    """Party that mounts the storage on the manager's machine: user, NNI or none."""

    USER = "usermount"
    """The user has mounted it."""
    NNI = "nnimount"
    NONE = "nomount"
    """It is not mounted there: the manager reads no outputs."""


@dataclass(frozen=True, slots=True)
class SharedStorage:
    """Settings of a storage: kind, mount points of manager and workers, source, account key."""

    kind: StorageKind
    local_mount_point: str
    """Absolute path on the manager's machine."""
    remote_mount_point: str
    """Path on workers; a relative one is below the home of the agent's user."""
    local_mount: LocalMount
    nfs_server: str = ""
    exported_directory: str = ""
    account: str = ""
    container: str = ""
    account_key: str = field(default="", repr=False)
    mark: str = ""
    """Content of the mark; empty: the manager does not see the storage, so there is none."""


_SOURCES: Final[Mapping[StorageKind, Mapping[str, str]]] = {
    StorageKind.NFS: {"nfs_server": "nfsServer", "exported_directory": "exportedDirectory"},
    StorageKind.AZURE_BLOB: {"account": "storageAccountName", "container": "containerName"},
}
"""Fields that say what is mounted, with their names in the options."""


def shared_storage_of(
    options: Mapping[str, object], secrets: Mapping[str, str]
) -> SharedStorage | None:
    """Return the storage in the options of a platform; None: the experiment has none.

    Args:
        options: of the platform, camelCase names.
        secrets: secret values by their path in the options.

    Raises:
        InvalidArgumentError: a field is missing, or breaks a rule.
    """
    section = options.get(OPTION)
    if section is None:
        return None
    if not isinstance(section, Mapping):
        raise InvalidArgumentError(OPTION, "must be a section", str(section)[:80])
    kind = _member(section, "storageType", StorageKind)
    storage = SharedStorage(
        kind,
        _text(section, "localMountPoint"),
        _text(section, "remoteMountPoint"),
        _member(section, "localMounted", LocalMount),
        account_key=secrets.get(f"{OPTION}.{KEY_OPTION}", ""),
        mark=str(section.get(MARK_OPTION, "")),
        **{name: _text(section, key) for name, key in _SOURCES[kind].items()},
    )
    for name, path in (
        ("localMountPoint", storage.local_mount_point),
        ("remoteMountPoint", storage.remote_mount_point),
    ):
        if ".." in path.split("/"):
            raise InvalidArgumentError(f"{OPTION}.{name}", "must be a path without '..'", path)
    if not storage.local_mount_point.startswith("/"):
        raise InvalidArgumentError(
            f"{OPTION}.localMountPoint", "must be an absolute path", storage.local_mount_point
        )
    return storage


def experiment_folder(experiment_id: str) -> str:
    """Return the path of an experiment's folder, relative to the root of the storage."""
    return f"{ROOT}/{experiment_id}"


def mount_command(
    storage: SharedStorage, folder: str, *, as_root: bool, config_file: str
) -> tuple[str, ...]:
    """Return the command that mounts a storage on a folder, by `sudo -n` for NFS unless root.

    Args:
        storage: what is mounted.
        folder: where; it exists.
        as_root: whether this process is root; else NFS needs `sudo` without a password.
        config_file: for Azure Blob: the file with `azure_config`.
    """
    if storage.kind is StorageKind.AZURE_BLOB:
        return ("blobfuse2", "mount", folder, f"--config-file={config_file}")
    source = f"{storage.nfs_server}:{storage.exported_directory}"
    return (*_sudo(as_root=as_root), "mount", "-t", "nfs", source, folder)


def unmount_command(storage: SharedStorage, folder: str, *, as_root: bool) -> tuple[str, ...]:
    """Return the command that unmounts a storage, by `sudo -n` for NFS unless root."""
    if storage.kind is StorageKind.AZURE_BLOB:
        return ("blobfuse2", "unmount", folder)
    return (*_sudo(as_root=as_root), "umount", folder)


def azure_config(storage: SharedStorage, cache_folder: str) -> str:
    """Return the YAML configuration of blobfuse2, with the account key if there is one.

    Without a key, blobfuse2 logs in by the identity of its machine.

    Args:
        storage: of the kind Azure Blob.
        cache_folder: for blocks that were read.
    """
    lines = [
        "components: [libfuse, file_cache, attr_cache, azstorage]",
        f"file_cache: {{path: {_quoted(cache_folder)}}}",
        "azstorage:",
        "  type: block",
        f"  account-name: {_quoted(storage.account)}",
        f"  container: {_quoted(storage.container)}",
    ]
    if storage.account_key:
        lines += ["  mode: key", f"  account-key: {_quoted(storage.account_key)}"]
    else:
        lines.append("  mode: msi")
    return "\n".join([*lines, ""])


def _sudo(*, as_root: bool) -> tuple[str, ...]:
    return () if as_root else ("sudo", "-n")


def _quoted(text: str) -> str:
    """Return a text as a single-quoted scalar of YAML."""
    return "'" + text.replace("'", "''") + "'"


def _text(section: Mapping[str, object], name: str) -> str:
    value = section.get(name)
    if not isinstance(value, str) or not value or len(value) > _LIMIT_CHARACTERS:
        raise InvalidArgumentError(
            f"{OPTION}.{name}", "must be a text that is not empty", str(value)[:80]
        )
    if not value.isprintable() or value.startswith("-"):
        raise InvalidArgumentError(
            f"{OPTION}.{name}", "must be printable, and not start with '-'", repr(value)[:80]
        )
    return value


def _member(section: Mapping[str, object], name: str, kind: type[_Member]) -> _Member:
    value = section.get(name)
    try:
        return kind(str(value))
    except ValueError:
        known = ", ".join(kind)
        raise InvalidArgumentError(
            f"{OPTION}.{name}", f"must be one of {known}", str(value)[:80]
        ) from None
