"""Table of the file systems that a machine mounts: `/etc/fstab`."""

import re
from pathlib import Path
from typing import Final

MOUNT_TABLE: Final = Path("/etc/fstab")
_FIELDS: Final = 3
"""Device, mount point and type; a line without them is damaged."""
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def declared_mount_point(place: Path, table: str) -> Path | None:
    """Return the nearest mount point of a table that is a folder or above it; None: it has none.

    The root of the machine does not count, since it is always mounted.

    Args:
        place: absolute path.
        table: content of the table, as of `fstab(5)`.

    Example:
        >>> declared_mount_point(Path("/mnt/data/tuning"), "nas:/data /mnt/data nfs defaults 0 0")
        PosixPath('/mnt/data')
    """
    lines = (line.split() for line in table.splitlines())
    points = {
        Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[1]))
        for fields in lines
        if len(fields) >= _FIELDS and not fields[0].startswith("#")
    }
    points.discard(Path("/"))
    return next((one for one in (place, *place.parents) if one in points), None)


def unmounted_point(place: Path, table: Path = MOUNT_TABLE) -> Path | None:
    """Return the mount point of a folder in a machine's table if it is not mounted; else None.

    Args:
        place: absolute path.
        table: the table; a machine without one, such as a container, mounts nothing.
    """
    try:
        text = table.read_text("utf-8", "replace")
    except OSError:
        return None
    point = declared_mount_point(place, text)
    if point is None:
        return None
    folders = (one for one in (place, *place.parents) if one.is_relative_to(point))
    return None if any(one.is_mount() for one in folders) else point
