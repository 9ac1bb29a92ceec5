"""Registrations of platforms by the user, for packages without an entry point.

Clients and services read the file that has them, see `nni_wire.own_platforms`.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from nni.durable_files import write_whole
from nni.experiment.config.training_service_base import TrainingServiceConfig
from nni.experiment.config.training_services import PLATFORMS, REMOVED_PLATFORMS
from nni.experiment.errors import ExperimentError

if TYPE_CHECKING:
    from nni_wire.own_platforms import PlatformEntry

_DEFAULT_OBJECT: Final = "entry"


def register_platform(package: str) -> str:
    """Check the platform of a package, write it to the registry, and return its name.

    Args:
        package: module with a `PlatformEntry` named `entry`, or `module:name` of one.

    Returns:
        Name of the platform, which is the default of the field `platform` of its section.

    Raises:
        ExperimentError: it cannot be imported or is wrong, or its name is taken.
    """
    from nni_wire.own_platforms import entry_point_names

    reference = package if ":" in package else f"{package}:{_DEFAULT_OBJECT}"
    try:
        name = _checked_name(reference)
    except ImportError as error:
        raise ExperimentError(
            f"--package {package} cannot be imported: {error}; install it where nnictl is installed"
        ) from error
    if name in PLATFORMS or name in REMOVED_PLATFORMS or name in entry_point_names():
        raise ExperimentError(
            f"the platform of {reference} must have a name that is not taken, got {name!r}; change "
            "the default of the field platform of its section"
        )
    with _changing() as known:
        known[name] = reference
    return name


def unregister_platform(name: str) -> None:
    """Remove the registration of a platform; ExperimentError if there is none.

    Args:
        name: of the platform.

    Raises:
        ExperimentError: no platform is registered under this name.
    """
    with _changing() as known:
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise ExperimentError(
                f"NAME must be a registered platform ({names}), got {name!r}; a platform of an "
                "entry point goes with its package: pip uninstall"
            )
        del known[name]


def _checked_name(reference: str) -> str:
    """Return the name of the platform of an entry; raise for an entry that is wrong.

    Raises:
        ExperimentError: the object is no entry, or names a class that is none of its kind.
        ImportError: a module cannot be imported.
    """
    from nni_wire.own_platforms import PlatformEntry, load_reference

    entry = load_reference(reference)
    if not isinstance(entry, PlatformEntry):
        raise ExperimentError(f"{reference} must be a PlatformEntry, got {entry!r:.80}")
    if entry.service:
        _check_service(entry)
    config = load_reference(entry.config)
    if not isinstance(config, type) or not issubclass(config, TrainingServiceConfig):
        raise ExperimentError(f"{entry.config} must be a TrainingServiceConfig, got {config!r:.80}")
    name = config.model_fields["platform"].default
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ExperimentError(
            f"the field platform of {entry.config} must have the platform's name as its default, "
            f"in printable characters, got {name!r:.80}"
        )
    return name


def _check_service(entry: PlatformEntry) -> None:
    from nni_wire.own_platforms import load_reference
    from nni_wire.training_services import TrainingService

    service = load_reference(entry.service)
    if not isinstance(service, type) or not issubclass(service, TrainingService):
        raise ExperimentError(f"{entry.service} must be a TrainingService, got {service!r:.80}")


@contextmanager
def _changing() -> Iterator[dict[str, str]]:
    """Yield the registrations to change, and write them back atomically, under a file lock."""
    from nni_wire.own_platforms import registered_platforms, registry_file

    path = registry_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            known = registered_platforms()
        except ImportError as error:
            raise ExperimentError(str(error)) from error
        yield known
        write_whole(path, json.dumps({"platforms": known}, indent=2) + "\n")
