"""Single files out of a tar archive in the byte store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, cast

from nni.durable_files import replace_durably
from nni.experiment.errors import ConfigError, Problem, ServiceFailedError
from nni_wire.tar_reader import Kind, TarError, TarReader


def unpack_files(
    pieces: Iterable[bytes], folder: Path, name_of: Callable[[str, bool], str | None]
) -> list[Path]:
    """Write the members that ``name_of`` accepts to a folder; return paths; raise if it is damaged.

    Args:
        pieces: the tar archive, in order.
        folder: made if missing.
        name_of: gets the path of a member without `./`, and whether it is a regular file; returns
            the name of the file in the folder, or None to leave it out. What it raises ends all.

    Raises:
        ServiceFailedError: the archive is damaged.
        ConfigError: the folder cannot be written.
    """
    with tempfile.TemporaryFile(prefix="nni-archive-") as file:
        for piece in pieces:
            file.write(piece)
        file.seek(0)
        try:
            return _unpack(cast("BinaryIO", file), folder, name_of)
        except TarError as error:
            raise ServiceFailedError(f"the archive is damaged: {error}") from error
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            raise ConfigError([Problem("folder", problem, str(folder))]) from error


def _unpack(file: BinaryIO, folder: Path, name_of: Callable[[str, bool], str | None]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    archive = TarReader(file)
    written = []
    for member in archive:
        name = name_of(member.name.removeprefix("./").rstrip("/"), member.kind is Kind.FILE)
        if name is None:
            continue
        draft = folder / f".{name}.part"
        with draft.open("wb") as output:
            archive.copy_content(output)
        replace_durably(draft, folder / name)
        written.append(folder / name)
    return written
