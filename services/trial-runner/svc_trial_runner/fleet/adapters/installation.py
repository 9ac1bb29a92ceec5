"""File with the id of an installation, which is part of the names of its agents."""

import os
import re
import secrets
import string
from contextlib import suppress
from pathlib import Path
from typing import Final

from svc_common.durable_files import sync_folder
from svc_common.own_files import place_for_file, read_or_set_aside, set_aside

INSTALLATION_FILE: Final = "installation"
"""In the home of the installation."""
_LENGTH: Final = 8
_CHARACTERS: Final = string.ascii_lowercase + string.digits
_ID: Final = re.compile(r"[a-z0-9]{8}\n?\Z")


def installation_id(home: Path) -> str:
    """Return the installation's id (8 lower-case letters and digits); draw and store it once.

    A damaged file is renamed. Agents with its id are then found no more, and end themselves when
    their credentials are not renewed.

    Args:
        home: folder of the installation's state.

    Raises:
        OSError: the file cannot be read or written.
    """
    path = home / INSTALLATION_FILE
    place_for_file(path)
    known = _read(path)
    if known:
        return known
    drawn = "".join(secrets.choice(_CHARACTERS) for _ in range(_LENGTH))
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as file:  # noqa: PTH123 - a descriptor
            file.write(f"{drawn}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # another process was first, and its id holds
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    sync_folder(home)
    return _read(path) or drawn


def _read(path: Path) -> str:
    content = read_or_set_aside(path)
    if content is None:
        return ""
    text = content.decode("ascii", "replace")
    if _ID.match(text):
        return text.strip()
    set_aside(path, "it must have 8 lower-case letters and digits")
    return ""
