"""Admission of folders of this machine that requests, and the logs they bring, name."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from svc_common.access.current_call import audit_folder, is_administrator, is_owner
from svc_common.errors import InvalidArgumentError
from svc_common.storage.shared_storage import SharedStorage
from svc_manager.converters.shared_storage import storage_of

_PLACES: Final = frozenset({"kubeconfig", "localstoragemountpoint", "sshkeyfile"})
"""Fields of platforms, in lower case, that name files and folders of the machine of the services.
A kubeconfig may name programs, which run there; a key may be that of another person."""


class FolderAdmission:
    """Access rule of folders: the token's owner may name any, others only those below roots.

    The owner of the installation, who holds its token and could do all that without the manager,
    may name any folder; other callers, and calls without one, only folders below the roots.

    Args:
        roots: of experiment folders.
    """

    def __init__(self, roots: Sequence[Path]) -> None:
        given = [Path(os.path.abspath(root)) for root in roots]  # noqa: PTH100 - keeps links
        self._roots = {*given, *(root.resolve() for root in given)}

    def check(self, field: str, directory: str) -> Path:
        """Return an absolute folder that the caller may name, and audit it; raise otherwise.

        Links are not looked at: they are refused when the folder is opened.

        Args:
            field: of the request.
            directory: an absolute path.

        Raises:
            InvalidArgumentError: it is no plain absolute path, or the caller may not name it.
        """
        path = Path(directory)
        if not path.is_absolute() or ".." in path.parts or "\0" in directory:
            raise InvalidArgumentError(
                field, "must be an absolute path without '..'", directory[:200]
            )
        audit_folder(str(path))
        if is_owner() or any(root == path or root in path.parents for root in self._roots):
            return path
        raise InvalidArgumentError(
            field,
            f"must be a folder below {' or '.join(sorted(map(str, self._roots)))}",
            directory[:200],
            "choose one there; the owner of this installation may use any folder, and may allow "
            "others to all in the manager's variable NNI_EXPERIMENT_ROOTS",
        )

    def check_storage(
        self, config: config_pb2.ExperimentConfig, secret_values: Mapping[str, str] | None = None
    ) -> SharedStorage | None:
        """Return a configuration's shared storage, None: it has none; raise if it is not admitted.

        A log that is imported or loaded has to pass this, too: the manager mounts, reads and
        deletes where its configuration says. Callers without the role `admin` may not name files of
        the services' machine in a platform either.

        Args:
            config: of an experiment.
            secret_values: of its first platform, by path; None: the storage needs none.

        Raises:
            InvalidArgumentError: a field breaks a rule, its platforms have different storages, or
                the caller may not name the folder, or a file of a platform.
        """
        if not is_administrator():
            _check_places(config)
        storage = storage_of(config, secret_values)
        for service in config.training_services[1:]:
            alone = config_pb2.ExperimentConfig(training_services=[service])
            if storage_of(alone, secret_values) != storage:
                raise InvalidArgumentError(
                    "sharedStorage", "must be the same for all platforms", service.platform
                )
        if storage is not None:
            self.check("sharedStorage.localMountPoint", storage.local_mount_point)
        return storage


def _check_places(config: config_pb2.ExperimentConfig) -> None:
    """Raise InvalidArgumentError if a platform's section names a file of the services' machine."""
    for service in config.training_services:
        for name in _names(service.options):
            if name.replace("_", "").lower() in _PLACES:
                raise InvalidArgumentError(
                    f"trainingService.{name}",
                    "may be given by administrators only, as it names a file or folder of the "
                    "machine of the services",
                    service.platform,
                    "leave it out, or ask the operator of these services for a pool",
                )


def _names(value: value_pb2.Value) -> Iterator[str]:
    """Yield the names of the fields with a value in a platform's section, at any depth."""
    for entry in value.map_value.entries:
        if entry.value.WhichOneof("kind") is not None:
            yield entry.key
        yield from _names(entry.value)
    for item in value.list_value.items:
        yield from _names(item)
