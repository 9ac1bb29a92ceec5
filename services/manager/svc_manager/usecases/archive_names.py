"""Names of the files in an archive of an experiment; pure, since the names come from outside."""

import re
from typing import Final

from nni_wire.trial_blobs import OUTPUT_FILES
from svc_common.errors import InvalidArgumentError
from svc_common.safe_folders import DEPTH_LIMIT

EVENTS: Final = "events.log"
VALUES: Final = "values/"
"""Prefix of large values; their SHA-256 follows."""
FOLDER: Final = "folder/"
"""Prefix of files in the experiment's folder; their path follows."""
OUTPUTS: Final = "outputs/"
"""Prefix of outputs of trials on other machines; trial, attempt and file follow."""
NAME_LIMIT_CHARACTERS: Final = 1_000
_OUTPUT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*/[0-9]{1,9}/([a-z.]+)\Z")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z")
_PART_LIMIT_BYTES: Final = 255
_LOCAL_NAMES: Final = frozenset({"environment.json", "db", ".loading"})
"""Parts of the folder that belong to this installation: secrets of the client, and the log."""
_CHECKPOINT: Final = "checkpoint/algorithm.json"
"""Refers to positions in the log, which differ in another installation."""


def is_saved(path: str) -> bool:
    """Return whether an archive takes a file: plain path, not the log, secrets or algorithm state.

    Args:
        path: in the folder, with `/`.
    """
    return path.partition("/")[0] not in _LOCAL_NAMES and path != _CHECKPOINT and _is_plain(path)


def check_name(name: str) -> str:
    """Return a file name of an archive if it has an allowed form; raise otherwise.

    Raises:
        InvalidArgumentError: it has another form, or leads out of the folder.
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
        and len(parts) <= DEPTH_LIMIT + 1
        and path.isprintable()
        and all(part not in {"", ".", ".."} for part in parts)
        and all(len(part.encode("utf-8", "replace")) <= _PART_LIMIT_BYTES for part in parts)
    )
