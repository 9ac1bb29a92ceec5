"""Use cases that move an experiment between installations: save and load an archive.

An archive holds the log, the large values that it names, and the files of the experiment's folder.
The environment of its client is left out: it may hold secrets and fits no other machine.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from nni_proto.experiment.v1 import event_pb2, experiment_pb2
from nni_proto.experiment.v1 import history_service_pb2 as pb
from nni_wire.trial_blobs import output_prefix
from nni_wire.values import blob_of
from svc_common.access.current_call import audit_folder
from svc_common.clock import Clock
from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from svc_common.messaging.ports import EventLog
from svc_common.storage.ports import CONTENT_KIND, BlobStore
from svc_common.subjects import check_id
from svc_manager.actors.registry import ActorRegistry
from svc_manager.blobs.large_values import LargeValues
from svc_manager.converters.blob_refs import blob_digests
from svc_manager.domain.blob_access import uploaded_key
from svc_manager.domain.decision_round import Round
from svc_manager.domain.events import ExperimentMoved, RequestRecorded
from svc_manager.event_log.file_format import MAGIC, record_of
from svc_manager.event_log.folder_import import append_batches, checked_batches
from svc_manager.ports import IdSource, SavedFolders, Stage
from svc_manager.usecases.archive_names import EVENTS, FOLDER, OUTPUTS, VALUES, check_name
from svc_manager.usecases.folder_admission import FolderAdmission
from svc_manager.usecases.request_checks import check_text

PIECE_BYTES: Final = 256 * 1024
FILE_LIMIT: Final = 200_000
SIZE_LIMIT_BYTES: Final = 16 * 1024**3
_LOAD_METHOD: Final = "LoadExperiment"


@dataclass(frozen=True, slots=True)
class ArchiveDependencies:
    """Log, byte store, folders, ids and clock that saving and loading archives need."""

    events: EventLog
    blobs: BlobStore
    folders: SavedFolders
    ids: IdSource
    clock: Clock
    admission: FolderAdmission | None = None
    """Which folders callers may name; None: those below the default root."""


class Archives:
    """Use cases that save an experiment as an archive stream and load one from it.

    Args:
        registry: registry of the actors.
        ports: ports of the manager.
        default_root: folder of experiments whose load request names none.
        version: of NNI.
        size_limit_bytes: maximum total size of the files of a loaded experiment.
    """

    def __init__(
        self,
        registry: ActorRegistry,
        ports: ArchiveDependencies,
        default_root: Path,
        version: str,
        *,
        size_limit_bytes: int = SIZE_LIMIT_BYTES,
    ) -> None:
        self._admission = ports.admission or FolderAdmission([default_root])
        self._registry = registry
        self._ports = ports
        self._values = LargeValues(ports.blobs)
        self._default_root = default_root
        self._version = version
        self._size_limit_bytes = size_limit_bytes
        self._loading: set[str] = set()

    async def save(
        self, experiment_id: str, *, with_files: bool
    ) -> AsyncGenerator[pb.SaveExperimentResponse, None]:
        """Yield an archive: description, log, large values; `with_files`: folder, outputs, too.

        Raises:
            NotFoundError: there is no such experiment, or the byte store has lost a value of it.
        """
        view = await self._registry.view(experiment_id)
        about = pb.SavedExperiment(experiment=view, nni_version=self._version)
        about.saved_at.FromDatetime(self._ports.clock.now())
        space = about.experiment.config.search_space
        if blob_of(space) is not None:
            space.CopyFrom(await self._values.load(space))
        yield pb.SaveExperimentResponse(about=about)
        digests: set[str] = set()
        async with aclosing(self._log(experiment_id, digests)) as pieces:
            async for data, last in pieces:
                yield _piece(EVENTS, data, last=last)
        for digest in sorted(digests):
            content = await self._ports.blobs.get(f"{CONTENT_KIND}/{digest}")
            for data, last in _pieces_of(content):
                yield _piece(VALUES + digest, data, last=last)
        audit_folder(view.directory)
        if with_files and view.directory:
            async with aclosing(
                self._ports.folders.files(Path(view.directory), experiment_id)
            ) as files:
                async for name, data, last in files:
                    yield _piece(FOLDER + name, data, last=last)
        if with_files:
            async with aclosing(self._outputs(experiment_id)) as outputs:
                async for piece in outputs:
                    yield piece

    async def _outputs(self, experiment_id: str) -> AsyncGenerator[pb.SaveExperimentResponse, None]:
        """Yield trials' outputs that other machines stored in the byte store, as archive pieces."""
        blobs, prefix = self._ports.blobs, output_prefix(experiment_id)
        for key in await blobs.keys(prefix):
            fetched = self._ports.folders.pieces(partial(blobs.fetch, key))
            async with aclosing(fetched) as pieces:
                async for data, last in pieces:
                    yield _piece(OUTPUTS + key.removeprefix(prefix), data, last=last)

    async def _log(
        self, experiment_id: str, digests: set[str]
    ) -> AsyncGenerator[tuple[bytes, bool], None]:
        """Yield the log file in pieces (bytes, whether last); add its blobs' hashes to a set."""
        buffer = bytearray(MAGIC)
        async with aclosing(self._ports.events.read(experiment_id)) as messages:
            async for message in messages:
                digests |= blob_digests(message.payload)
                buffer += record_of(message.sequence, message.payload)
                while len(buffer) > PIECE_BYTES:
                    yield bytes(buffer[:PIECE_BYTES]), False
                    del buffer[:PIECE_BYTES]
        yield bytes(buffer), True

    async def load(
        self, requests: AsyncIterator[pb.LoadExperimentRequest]
    ) -> experiment_pb2.Experiment:
        """Load an experiment from an archive stream, STOPPED; return it; undo and raise on failure.

        The experiment is STOPPED afterwards, or removed on failure.

        No other manager loads the same experiment meanwhile. A repeated request gets the same
        response, and only the header of its stream is read.

        Raises:
            InvalidArgumentError: the archive breaks a rule.
            FailedPreconditionError: its id or its folder is in use.
            OwnedElsewhereError: another manager owns it, or is loading it.
            ResourceExhaustedError: it is too large, or there is no room.
        """
        header = await _header(requests)
        experiment_id = check_id("experiment_id", header.experiment_id)
        before = await self._loaded_by(header)
        if before is not None:
            return before
        if experiment_id in self._loading:
            raise _id_in_use(experiment_id, "is being loaded")
        root = self._root(header)
        self._loading.add(experiment_id)
        try:
            await self._registry.reserve(experiment_id)
            stage = await self._ports.folders.stage(root)
            try:
                await _receive(requests, stage, self._size_limit_bytes)
                await self._import(header, stage, root / experiment_id)
            finally:
                await stage.discard()
            return (await self._registry.find(experiment_id)).view()
        finally:
            self._loading.discard(experiment_id)
            await self._registry.release(experiment_id)

    def _root(self, header: pb.LoadHeader) -> Path:
        """Return the root folder that a load request names, or the default; raise unless admitted.

        Raises:
            InvalidArgumentError: a path is not absolute, or the caller may not name it.
        """
        for field in ("experiment_working_directory", "trial_code_directory"):
            path = getattr(header, field)
            check_text(path, field)
            if path and not Path(path).is_absolute():
                raise InvalidArgumentError(field, "must be an absolute path", path)
        root = header.experiment_working_directory or str(self._default_root)
        return self._admission.check("experiment_working_directory", root)

    async def _loaded_by(self, header: pb.LoadHeader) -> experiment_pb2.Experiment | None:
        """Return the experiment that this request id loaded before; None: unknown; raise if taken.

        Raises:
            FailedPreconditionError: an experiment of this id has another origin.
            OwnedElsewhereError: another manager owns the experiment of this id.
        """
        try:
            actor = await self._registry.find(header.experiment_id)
        except NotFoundError:
            return None
        if header.request_id and header.request_id in actor.experiment.requests:
            return actor.view()
        raise _id_in_use(header.experiment_id, "is here already")

    async def _import(self, header: pb.LoadHeader, stage: Stage, directory: Path) -> None:
        records = await stage.records()
        batches = checked_batches(records, header.experiment_id, self._admission.check_storage)
        await self._put_values(header.experiment_id, stage, batches)
        for name, path in stage.outputs():
            key = output_prefix(header.experiment_id) + name
            await self._ports.blobs.put_named_file(key, path)
        await stage.place(directory)

        def close(round_: Round) -> None:
            round_.emit(ExperimentMoved(str(directory), header.trial_code_directory))
            if header.request_id:
                round_.emit(RequestRecorded(header.request_id, "", _LOAD_METHOD))

        log = self._ports.events
        last = await log.last(header.experiment_id)
        if last is not None and last.is_loading:
            await log.delete(header.experiment_id)  # of a load that a kill interrupted
        try:
            await append_batches(log, self._ports.ids, header.experiment_id, batches, close)
        except BaseException:
            await log.delete(header.experiment_id)
            await self._ports.folders.remove(directory)
            raise

    async def _put_values(
        self, experiment_id: str, stage: Stage, batches: list[tuple[int, event_pb2.EventBatch]]
    ) -> None:
        """Store an archive's blobs; raise if a hash is wrong or a named one is missing.

        Agents may have them: checkpoints are among them.
        """
        blobs = self._ports.blobs
        for digest, path in stage.values():
            if await blobs.put_file(path) != f"{CONTENT_KIND}/{digest}":
                raise InvalidArgumentError(
                    VALUES + digest,
                    "must have the hash in its name",
                    None,
                    "the archive is damaged",
                )
            await blobs.put_named(uploaded_key(experiment_id, digest), b"")
        wanted = {
            digest for _, batch in batches for digest in blob_digests(batch.SerializeToString())
        }
        for digest in sorted(wanted):
            if not await blobs.exists(f"{CONTENT_KIND}/{digest}"):
                raise InvalidArgumentError(
                    VALUES + digest,
                    "must be in the archive, for the log names it",
                    None,
                    "save it again",
                )


def _piece(name: str, data: bytes, *, last: bool) -> pb.SaveExperimentResponse:
    return pb.SaveExperimentResponse(piece=pb.FilePiece(name=name, data=data, last=last))


def _pieces_of(content: bytes) -> list[tuple[bytes, bool]]:
    starts = range(0, max(1, len(content)), PIECE_BYTES)
    return [
        (content[start : start + PIECE_BYTES], start + PIECE_BYTES >= len(content))
        for start in starts
    ]


def _checked(request: Any) -> pb.LoadExperimentRequest:  # noqa: ANN401 - see below
    """Return a stream's item if it is a request message; raise InvalidArgumentError otherwise."""
    if not isinstance(request, pb.LoadExperimentRequest):
        raise InvalidArgumentError("request", "must be a message of this method")
    return request


async def _header(requests: AsyncIterator[pb.LoadExperimentRequest]) -> pb.LoadHeader:
    async for request in requests:
        if _checked(request).HasField("header"):
            return request.header
        break
    raise InvalidArgumentError("header", "must come first")


async def _receive(
    requests: AsyncIterator[pb.LoadExperimentRequest], stage: Stage, size_limit_bytes: int
) -> None:
    """Write the archive's pieces to the stage; raise for bad names, order or size."""
    names: set[str] = set()
    current, size_bytes = "", 0
    async for request in requests:
        if not _checked(request).HasField("piece"):
            raise InvalidArgumentError("piece", "must follow the header")
        piece = request.piece
        if piece.name != current:
            if current or piece.name in names:
                raise InvalidArgumentError(
                    "name", "must be of one file after the other, each once", piece.name[:120]
                )
            current = check_name(piece.name)
            names.add(current)
        size_bytes += len(piece.data)
        if len(names) > FILE_LIMIT or size_bytes > size_limit_bytes:
            raise ResourceExhaustedError(
                f"an experiment that is loaded may have {FILE_LIMIT:,} files and "
                f"{size_limit_bytes // 1024**3} GiB; save it without the files of its trials"
            )
        await stage.write(current, piece.data, last=piece.last)
        if piece.last:
            current = ""
    if current:
        raise InvalidArgumentError("piece", "must come to its end", current[:120])


def _id_in_use(experiment_id: str, how: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"experiment {experiment_id} {how}; remove that one with `nnictl experiment delete "
        f"{experiment_id}`, or load the archive into another installation (another NNI_HOME)",
        {"experiment_id": experiment_id},
    )
