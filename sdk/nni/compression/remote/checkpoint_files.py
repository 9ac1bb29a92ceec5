"""Files of a step, unpacked from the archive in the byte store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final, cast

from nni.durable_files import replace_durably
from nni.experiment.errors import ConfigError, Problem, ServiceFailedError
from nni_wire.tar_reader import Kind, TarError, TarReader

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
        ServiceFailedError: the archive has another member than the files of a step.
        ConfigError: the folder cannot be written.
    """
    with tempfile.TemporaryFile(prefix="nni-checkpoint-") as file:
        for piece in pieces:
            file.write(piece)
        file.seek(0)
        try:
            _unpack(cast("BinaryIO", file), folder)
        except TarError as error:
            raise ServiceFailedError(f"the checkpoint is damaged: {error}") from error
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            raise ConfigError([Problem("folder", problem, str(folder))]) from error


def _unpack(file: BinaryIO, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    archive = TarReader(file)
    for member in archive:
        name = member.name.removeprefix("./").rstrip("/")
        if member.kind is Kind.FOLDER and name in {"", "."}:
            continue
        if member.kind is not Kind.FILE or name not in FILES:
            raise ServiceFailedError(
                f"the checkpoint has {member.name!r}, which is no file of a step"
            )
        draft = folder / f".{name}.part"
        with draft.open("wb") as output:
            archive.copy_content(output)
        replace_durably(draft, folder / name)
