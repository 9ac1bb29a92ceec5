"""What the files of a saved experiment are called; pure, since the names come from outside."""

import re
from typing import Final

from nni_wire.trial_blobs import OUTPUT_FILES
from svc_common.errors import InvalidArgumentError

EVENTS: Final = "events.log"
VALUES: Final = "values/"
"""Then the SHA-256 of what lay in the byte store."""
FOLDER: Final = "folder/"
"""Then the path of a file in the experiment's folder."""
OUTPUTS: Final = "outputs/"
"""Then trial, attempt and file of what a trial on another machine has written."""
NAME_LIMIT_CHARACTERS: Final = 1_000
_OUTPUT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*/[0-9]{1,9}/([a-z.]+)\Z")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z")
_PART_LIMIT_BYTES: Final = 255
_OURS: Final = frozenset({"environment.json", "db", ".loading"})
"""What the folder holds of this installation: secrets of the client, and the log itself."""
_CHECKPOINT: Final = "checkpoint/algorithm.json"
"""Bound to places in the log, which differ elsewhere."""


def is_saved(path: str) -> bool:
    """Tell whether a file of an experiment's folder travels.

    Args:
        path: in the folder, with `/`.
    """
    return path.partition("/")[0] not in _OURS and path != _CHECKPOINT and _is_plain(path)


def check_name(name: str) -> str:
    """Return ``name`` if a saved experiment may hold a file of it.

    Raises:
        InvalidArgumentError: it is none of ours, or leads out of the folder.
    """
    if len(name) <= NAME_LIMIT_CHARACTERS:
        if name == EVENTS:
            return name
        if name.startswith(VALUES) and _DIGEST.match(name.removeprefix(VALUES)):
            return name
        output = _OUTPUT.match(name.removeprefix(OUTPUTS)) if name.startswith(OUTPUTS) else None
        if output is not None and output[1] in OUTPUT_FILES:
            return name
        if name.startswith(FOLDER) and is_saved(name.removeprefix(FOLDER)):
            return name
    raise InvalidArgumentError(
        "name",
        f"must be {EVENTS}, {VALUES}<SHA-256>, {OUTPUTS}<trial>/<attempt>/<file> or "
        f"{FOLDER}<path without '.' and '..'>",
        name[:120],
    )


def _is_plain(path: str) -> bool:
    parts = path.split("/")
    return (
        "\\" not in path
        and path.isprintable()
        and all(part not in {"", ".", ".."} for part in parts)
        and all(len(part.encode("utf-8", "replace")) <= _PART_LIMIT_BYTES for part in parts)
    )
