"""Platforms that other packages add, by entry points of `nni.platforms` or by registration.

The name of an entry point is that of the platform, and its object a `PlatformEntry`, in a module
that imports little: the client reads the class of the configuration, the fleet the adapter.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

GROUP: Final = "nni.platforms"
"""Group of entry points."""


@dataclass(frozen=True, slots=True)
class PlatformEntry:
    """Entry of a foreign platform: config class, and the class of its adapter or its service.

    Examples:
        >>> entry = PlatformEntry("queues.config:QueueConfig", "queues.adapter:QueueAdapter")
        >>> entry.isolated
        False
        >>> entry = PlatformEntry("queues.config:QueueConfig", service="queues.jobs:QueueService")
        >>> entry.runs_in_child_process
        True
    """

    config: str
    """`module:name` of the class of the section: a `nni.experiment.TrainingServiceConfig`."""
    adapter: str = ""
    """`module:name` of the factory of the adapter, which takes an `AdapterContext`; empty: the
    platform has a service."""
    isolated: bool = False
    """True: the adapter runs in a child process of the fleet, as heavy or fragile ones should."""
    service: str = ""
    """`module:name` of a `nni_wire.training_services.TrainingService`, which always runs in a child
    process; empty: the platform has an adapter."""

    def __post_init__(self) -> None:
        """Raise ValueError unless exactly one of `adapter` and `service` is given."""
        if bool(self.adapter) == bool(self.service):
            raise ValueError(
                "adapter or service must be given, and not both, got "
                f"adapter={self.adapter!r} and service={self.service!r}; a service is a "
                "TrainingService, an adapter starts agents itself"
            )

    @property
    def runs_in_child_process(self) -> bool:
        """True if the entry is isolated or names a service, so that a child process runs it."""
        return self.isolated or bool(self.service)


def registry_file() -> Path:
    """Return the path of this environment's registry in the user's config folder; may not exist.

    Its name has a hash of `sys.prefix`.

    Raises:
        RuntimeError: neither `XDG_CONFIG_HOME` nor a home folder of the user is known.
    """
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    environment = hashlib.sha256(os.path.realpath(sys.prefix).encode()).hexdigest()[:8]
    return Path(home).expanduser() / "nni" / f"platforms-{environment}.json"


def registered_platforms() -> dict[str, str]:
    """Read the registry file: return references `module:name` by platform; {} if there is no file.

    `nnictl trainingservice register` writes them.

    Raises:
        ImportError: the file cannot be read; the text names it and what to do.
    """
    try:
        path = registry_file()
    except RuntimeError:  # the user of a container has no home
        return {}
    try:
        platforms = json.loads(path.read_text("utf-8"))["platforms"]
        return {str(name): str(reference) for name, reference in platforms.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImportError(
            f"the registered platforms in {path} cannot be read ({error}); repair or delete it"
        ) from error


def entry_point_names() -> tuple[str, ...]:
    """Return the sorted names of platforms in the entry points of packages; import none."""
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def own_platform_names() -> tuple[str, ...]:
    """Return the sorted names of platforms in entry points and in the registry; import none.

    A damaged registry counts as empty.
    """
    registered: dict[str, str] = {}
    with suppress(ImportError):  # a damaged file is reported where its platform is loaded
        registered = registered_platforms()
    return tuple(sorted({*entry_point_names(), *registered}))


def load_own_platform(name: str) -> Any | None:  # noqa: ANN401 - an object of another package
    """Import a platform's object by entry point or registry file; None if unknown, or ImportError.

    Raises:
        ImportError: its module cannot be imported, or has no such object; or the registry cannot
            be read.
    """
    from importlib.metadata import entry_points  # as above

    for point in entry_points(group=GROUP, name=name):
        return _imported(point.load, point.value, point.module)
    reference = registered_platforms().get(name)
    return None if reference is None else load_reference(reference)


def load_reference(reference: str) -> Any:  # noqa: ANN401 - as above
    """Import the object of a reference `module:name`; raise ImportError if there is none.

    Raises:
        ImportError: there is no such module, or no such object in it.
    """
    module, _, name = reference.partition(":")
    found = _imported(lambda: import_module(module), reference, module)
    try:
        return _imported(lambda: getattr(found, name), reference, module)
    except ImportError as error:
        if isinstance(error.__cause__, AttributeError):
            raise ImportError(f"{module} has no {name}", name=module) from error  # noqa: TRY004 - it is an import
        raise


def _imported(load: Callable[[], Any], reference: str, module: str) -> Any:  # noqa: ANN401 - as above
    """Return what a call imports; raise ImportError for anything that code of the user raises.

    `sys.exit()` at import would end the service that imports it.

    Raises:
        ImportError: of the call, or in place of any other error.
    """
    try:
        return load()
    except ImportError:
        raise
    except (Exception, SystemExit) as error:
        cause = f"{type(error).__name__}: {error!s:.500}"
        raise ImportError(f"{reference}: {cause}", name=module) from error
