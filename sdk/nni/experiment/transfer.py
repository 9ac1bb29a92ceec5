"""Transfer of experiments: save one to a file, load it into another installation."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nni.durable_files import replace_durably
from nni.experiment.archive import CODE, Archive, ArchiveWriter
from nni.experiment.errors import ConfigError, Problem, RefusedError, ServiceFailedError
from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.experiment.v1 import history_service_pb2 as pb
from nni_wire.values import from_value

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient

SPACE_FILE: Final = "search_space.json"
_ARCHIVE_PREFIX: Final = "nni_experiment_"
_COMPARED_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SavedArchive:
    """Archive that `save` has written: path, number of files, size."""

    path: Path
    file_count: int
    size_bytes: int
    """Size of the archive."""


def save(
    client: ManagerClient,
    experiment_id: str,
    folder: Path,
    *,
    with_code: bool = False,
    with_files: bool = True,
    on_progress: Callable[[str], None] = lambda _name: None,
) -> SavedArchive:
    """Write an experiment, with code and files as set, to a private zip; return path and size.

    Args:
        client: of the services that know the experiment.
        experiment_id: the experiment; one that runs is saved as far as its log goes now.
        folder: where the archive goes; made if it does not exist.
        with_code: the folder of the trials' code too, without what its `.nniignore` names.
        with_files: what trials have written and the logs too.
        on_progress: called with the name of each file.

    Raises:
        NotFoundError: no experiment has this id.
        ConfigError: the folder cannot be written, or the code not be packed.
    """
    path = folder / f"{_ARCHIVE_PREFIX}{experiment_id}.zip"
    with _whole_file(path) as file, ArchiveWriter(file) as writer:
        about, count = _receive(client, experiment_id, writer, on_progress, with_files=with_files)
        if with_code and about.experiment.config.HasField("callers"):
            rule = "must be left out: the code of a shared study is with its callers"
            raise ConfigError([Problem("--saveCodeDir", rule)])
        if with_code:
            directory = Path(about.experiment.config.trial_code_directory)
            count += _add_code(writer, directory, besides=Path(file.name))
        writer.finish(
            experiment_id=experiment_id,
            nni_version=about.nni_version,
            saved_at=about.saved_at.ToJsonString(),
            search_space=from_value(about.experiment.config.search_space),
        )
    return SavedArchive(path, count, path.stat().st_size)


def _receive(
    client: ManagerClient,
    experiment_id: str,
    writer: ArchiveWriter,
    on_progress: Callable[[str], None],
    *,
    with_files: bool,
) -> tuple[pb.SavedExperiment, int]:
    messages = client.save(experiment_id, with_files=with_files)
    about = next((message.about for message in messages if message.HasField("about")), None)
    if about is None:
        raise ServiceFailedError(f"the services gave nothing of experiment {experiment_id}")
    count = 0
    for message in messages:
        piece = message.piece
        on_progress(piece.name)
        count += 1
        with writer.member(piece.name) as member:
            member.write(piece.data)
            while not piece.last:
                following = next(messages, None)
                if following is None or following.piece.name != piece.name:
                    raise ServiceFailedError(f"the services broke off in {piece.name}; save again")
                piece = following.piece
                member.write(piece.data)
    return about, count


def _add_code(writer: ArchiveWriter, directory: Path, besides: Path) -> int:
    """Write the code directory, without saved archives, into an archive; return the file count."""
    from nni.experiment.code_archive import code_files

    if not directory.is_dir():
        rule = "needs the folder of the trials' code, which is not on this machine"
        raise ConfigError([Problem("--saveCodeDir", rule, str(directory))])
    files = [
        file
        for file in code_files(directory)
        if not (file.path.name.startswith(_ARCHIVE_PREFIX) and file.path.suffix == ".zip")
        and not file.path.samefile(besides)
    ]
    for file in files:
        try:
            content = file.path.open("rb")
        except OSError as error:
            rule = f"must be readable: {error.strerror}"
            raise ConfigError([Problem("--saveCodeDir", rule, str(file.path))]) from error
        with content, writer.member(CODE + file.name, executable=file.executable) as member:
            left = file.size_bytes  # a log that grows meanwhile has no end
            while left and (chunk := content.read(min(left, _COMPARED_BYTES))):
                member.write(chunk)
                left -= len(chunk)
    return len(files)


@contextlib.contextmanager
def _whole_file(path: Path) -> Iterator[Any]:
    """Yield a private file that replaces ``path`` whole at the end, or not at all on an error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".nni-", dir=path.parent)  # mode 0600
    except OSError as error:
        rule = f"must be a folder that can be written: {error.strerror}"
        raise ConfigError([Problem("--path", rule, str(path.parent))]) from error
    temporary = Path(name)
    try:
        os.close(descriptor)
        with temporary.open("wb") as file:
            yield file
        replace_durably(temporary, path)
    except OSError as error:
        rule = f"must be a folder that can be written: {error.strerror}"
        raise ConfigError([Problem("--path", rule, str(path.parent))]) from error
    finally:
        temporary.unlink(missing_ok=True)


def load(
    client: ManagerClient,
    path: Path,
    code_directory: Path,
    *,
    root: Path | None = None,
    search_space_path: Path | None = None,
    on_progress: Callable[[str], None] = lambda _name: None,
) -> experiment_pb2.Experiment:
    """Load an archive's experiment as STOPPED, place code and search space; return it.

    Everything in the archive is checked before anything is written.

    Args:
        client: of the services that are to know it.
        path: the archive.
        code_directory: where the code of its trials is placed, or lies already.
        root: the experiment will live in `<root>/<id>`; `None`: the services' default.
        search_space_path: where its search space is written; `None`: `search_space.json` in
            ``code_directory``.
        on_progress: called with the name of each file.

    Raises:
        ConfigError: the archive is damaged or no archive.
        RefusedError: the code would replace other files.
        WrongStateError: there is an experiment of this id.
    """
    code_directory = code_directory.expanduser().resolve()
    space_path = search_space_path or code_directory / SPACE_FILE
    with Archive(path) as archive:
        archive.verify()
        space = json.dumps(archive.manifest.search_space, indent=2) + "\n"
        _check_places(archive, code_directory)
        if archive.manifest.search_space is not None:
            _check_space(space_path, space, archive)
        header = pb.LoadHeader(
            experiment_id=archive.manifest.experiment_id,
            trial_code_directory=str(code_directory),
            experiment_working_directory="" if root is None else str(root.expanduser().resolve()),
        )
        experiment = client.load(header, lambda: _pieces(archive, on_progress))
        _place_code(archive, code_directory)
    if archive.manifest.search_space is not None:
        _write_text(space_path, space)
    return experiment


def _pieces(archive: Archive, on_progress: Callable[[str], None]) -> Iterator[pb.FilePiece]:
    for name in archive.manifest.files:
        if name.startswith(CODE):
            continue
        on_progress(name)
        for data, last in archive.pieces(name):
            yield pb.FilePiece(name=name, data=data, last=last)


def _check_places(archive: Archive, directory: Path) -> None:
    """Raise RefusedError if unpacked code would replace a different file or leave its folder.

    Raises:
        RefusedError: it cannot.
    """
    for name in archive.manifest.code:
        place = directory / name
        inside = place.resolve().is_relative_to(directory)
        taken = place.is_symlink() or (place.exists() and not _is_equal(archive, name, place))
        if taken or not inside:
            raise RefusedError(
                f"{place} is another file than the archive's; choose another --codeDir"
            )


def _is_equal(archive: Archive, name: str, place: Path) -> bool:
    member = archive.manifest.code[name]
    if not place.is_file() or place.stat().st_size != member.size_bytes:
        return False
    with place.open("rb") as file:
        return all(file.read(len(data)) == data for data, _ in archive.pieces(CODE + name))


def _check_space(path: Path, text: str, archive: Archive) -> None:
    """Raise RefusedError if the search-space file exists with another content.

    Raises:
        RefusedError: it cannot.
    """
    if not path.exists():
        return
    try:
        same = json.loads(path.read_text("utf-8")) == json.loads(text)
    except (OSError, ValueError):
        same = False
    if not same:
        raise RefusedError(
            f"{path} holds something else than the search space of experiment "
            f"{archive.manifest.experiment_id}; name another file with --searchSpacePath"
        )


def _place_code(archive: Archive, directory: Path) -> None:
    for name, member in archive.manifest.code.items():
        place = directory / name
        if place.exists():  # the same, as `_check_places` has seen
            continue
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as file:
                for data, _ in archive.pieces(CODE + name):
                    file.write(data)
            place.chmod(0o755 if member.executable else 0o644)
        except OSError as error:
            raise _unwritable("--codeDir", place, error) from error


def _write_text(path: Path, text: str) -> None:
    if path.exists():  # the same space, perhaps in another form
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise _unwritable("--searchSpacePath", path, error) from error


def _unwritable(option: str, path: Path, error: OSError) -> RefusedError:
    return RefusedError(
        f"the experiment is loaded, but {path} cannot be written ({error.strerror}); "
        f"choose another {option} and place it by hand"
    )
