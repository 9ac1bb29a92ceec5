"""Files of a step, unpacked from the archive in the byte store."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nni.experiment.archive_files import unpack_files
from nni.experiment.errors import ServiceFailedError

FILES: Final = frozenset(
    {
        *("masks.safetensors", "model.safetensors", "random.safetensors"),
        *("calibration.json", "model.onnx", "plan.json", "step.json"),
    }
)
"""Names of the files of a step; an archive may have no other ones."""


def unpack_checkpoint(pieces: Iterable[bytes], folder: Path) -> None:
    """Write the files of a step's archive to a folder.

    Args:
        pieces: the tar archive, in order.
        folder: made if missing.

    Raises:
        ServiceFailedError: the archive is damaged, or has another member than the files of a step.
        ConfigError: the folder cannot be written.
    """
    unpack_files(pieces, folder, _file_of_step)


def _file_of_step(name: str, is_file: bool) -> str | None:  # noqa: FBT001 - as `unpack_files` calls it
    if name in {"", "."} and not is_file:
        return None
    if not is_file or name not in FILES:
        raise ServiceFailedError(f"the checkpoint has {name!r}, which is no file of a step")
    return name
