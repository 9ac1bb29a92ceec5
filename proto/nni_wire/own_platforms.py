"""Platforms that other packages add, by entry points of the group `nni.platforms`.

The name of an entry point is that of the platform, and its object a `PlatformEntry`, in a module
that imports little: the client reads the class of the configuration, the fleet the adapter.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

GROUP: Final = "nni.platforms"
"""Group of entry points."""


@dataclass(frozen=True, slots=True)
class PlatformEntry:
    """Entry of a foreign platform: `module:name` of config class and adapter; whether isolated.

    Examples:
        >>> entry = PlatformEntry("queues.config:QueueConfig", "queues.adapter:QueueAdapter")
        >>> entry.isolated
        False
    """

    config: str
    """`module:name` of the class of the section: a `nni.experiment.TrainingServiceConfig`."""
    adapter: str
    """`module:name` of the factory of the adapter, which takes an `AdapterContext`."""
    isolated: bool = False
    """True: the adapter runs in a child process of the fleet, as heavy or fragile ones should."""


def own_platform_names() -> tuple[str, ...]:
    """Return the sorted names of platforms in the entry points of packages; import none."""
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def load_own_platform(name: str) -> Any | None:  # noqa: ANN401 - an object of another package
    """Import a platform's object by its entry point; None: there is none; ImportError if broken.

    Raises:
        ImportError: its module cannot be imported, or has no such object.
    """
    from importlib.metadata import entry_points  # as above

    for point in entry_points(group=GROUP, name=name):
        try:
            return point.load()
        except AttributeError as error:
            raise ImportError(f"{point.value}: {error}", name=point.module) from error
    return None


def load_reference(reference: str) -> Any:  # noqa: ANN401 - as above
    """Import the object of a reference `module:name`; raise ImportError if there is none.

    Raises:
        ImportError: there is no such module, or no such object in it.
    """
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except AttributeError as error:
        raise ImportError(f"{module} has no {name}", name=module) from error
