"""Ports of the manager to its environment; the bus and the byte store have their own.

The module is longer than others, so that all ports of the service stand in one place.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from nni_proto.experiment.v1 import config_pb2, experiment_pb2
from nni_proto.runner.v1 import pool_pb2, pool_service_pb2
from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from svc_common.errors import FailedPreconditionError
from svc_common.safe_folders import SafeFolder
from svc_manager.domain.lease import Lease, ManagerId
from svc_manager.domain.state import Experiment


class PortTakenError(FailedPreconditionError):
    """Refusal to open an experiment's listener, because another program has its port.

    Args:
        port: the port.
        holder: its holder, as text: `experiment abcd1234` or `program nginx (pid 12)`; empty:
            unknown.
    """

    def __init__(self, port: int, holder: str) -> None:
        by = f" by {holder}" if holder else ""
        super().__init__(
            f"port {port} is in use{by}; choose another one with --port",
            {"field": "port", "value": str(port), "holder": holder},
        )
        self.port = port
        self.holder = holder


class Listeners(Protocol):
    """Interface of the web servers: one for all experiments, one per experiment with a port."""

    async def open_listener(self, port: int, experiment_id: str, url_prefix: str) -> None:
        """Serve an experiment's page and REST API on a port; return when it accepts connections.

        Opening the same listener again has no effect.

        Args:
            port: 1 to 65535.
            experiment_id: the experiment that `/api/v1/nni/*` addresses there.
            url_prefix: prefix of all paths, without slashes at its ends; may be empty.

        Raises:
            PortTakenError: the port is in use; the error names the holder.
        """
        ...

    async def close_listener(self, experiment_id: str) -> None:
        """Stop serving an experiment on its own port; do nothing if it has none.

        Returns at once; requests under way on that listener still get their responses.
        """
        ...

    def urls(self, port: int, url_prefix: str) -> list[str]:
        """Return the URLs of a listener by port and prefix, loopback first; it need not be open."""
        ...


class AlgorithmChecker(Protocol):
    """Interface by which the dispatcher validates a configuration before it is used."""

    async def check(
        self,
        config: config_pb2.ExperimentConfig,
        interpreter: str,
        *,
        replaces_space: bool = False,
        replaced_tuner: config_pb2.AlgorithmConfig | None = None,
    ) -> tuple[list[str], str]:
        """Validate algorithms, arguments and search space; return warnings and optimize mode.

        Args:
            config: the configuration.
            interpreter: runs custom classes.
            replaces_space: the experiment runs, and only its search space is new.
            replaced_tuner: that of the running experiment, which the one of `config` takes over.

        Returns:
            Warnings, and the optimize mode (`minimize`, `maximize` or empty).

        Raises:
            InvalidArgumentError: it is invalid; the message says why.
            UnavailableError: the dispatcher cannot be reached.
        """
        ...


class JobChecker(Protocol):
    """Interface by which a service validates its jobs, and is started for them."""

    async def check(self, config: config_pb2.ExperimentConfig) -> None:
        """Make the compressor validate a job, or the NAS service an exploration; raise if invalid.

        Args:
            config: a configuration with `compression` or `nas`.

        Raises:
            InvalidArgumentError: it is invalid; the message names the field.
            FailedPreconditionError: this installation has no such service.
            UnavailableError: the service cannot be reached.
        """
        ...


class Analyst(Protocol):
    """Interface to the dispatcher's analyses: importance, Pareto front, constraints."""

    async def importance(
        self, request: pb.MeasureImportanceRequest
    ) -> pb.MeasureImportanceResponse:
        """Compute how much each hyperparameter explains of a metric's variance.

        Raises:
            FailedPreconditionError: there are too few results.
            UnavailableError: the dispatcher cannot be reached.
        """
        ...

    async def front(self, request: pb.FindParetoFrontRequest) -> pb.FindParetoFrontResponse:
        """Return the ids of trials that no other one dominates, and counts of those left out.

        Raises:
            UnavailableError: the dispatcher cannot be reached.
        """
        ...

    async def broken(self, request: pb.CheckConfigurationsRequest) -> Sequence[str]:
        """Return for each configuration the text of a constraint that it breaks; empty: none.

        Raises:
            UnavailableError: the dispatcher cannot be reached.
        """
        ...


class IdSource(Protocol):
    """Source of random experiment ids, trial ids and seeds: the only randomness of decisions."""

    def experiment_id(self, request_id: str = "", draw: int = 0) -> str:
        """Draw an experiment id of 8 characters [a-z0-9]; the same id for the same request.

        Args:
            request_id: the same request and draw give the same id; empty: a random id.
            draw: number of earlier draws of this request that are in use.
        """
        ...

    def trial_id(self) -> str:
        """Draw 5 characters of [A-Za-z0-9]; not necessarily unused."""
        ...

    def seed(self) -> int:
        """Draw a seed for an algorithm, 0 to 2**31 - 1."""
        ...


class FolderOpener(Protocol):
    """Interface that opens or creates experiment folders without following links."""

    def open(self, directory: Path) -> SafeFolder:
        """Open an experiment's existing folder for safe access; the caller closes it.

        Raises:
            FileNotFoundError: it does not exist, or lies behind a link.
            OSError: it cannot be opened.
        """
        ...

    def make(self, directory: Path) -> SafeFolder:
        """Open an experiment's folder for safe access; create it if it is missing.

        Raises:
            OSError: it cannot be created or opened.
        """
        ...


class Folders(FolderOpener, Protocol):
    """Interface that creates and deletes experiment folders (`<root>/<id>`) on this machine."""

    async def create(
        self, directory: Path, environment: Mapping[str, str], interpreter: str
    ) -> str:
        """Create an experiment's folder tree with its `environment.json`; return that file's hash.

        Returns:
            SHA-256 of the environment, in hexadecimal digits.

        Raises:
            InvalidArgumentError: the folder cannot be created, or the disk is full.
        """
        ...

    async def remove(self, directory: Path) -> None:
        """Delete a folder tree; do nothing if there is none; only log a failure."""
        ...

    async def rename_of(self, directory: Path, experiment_id: str, new: Path) -> bool:
        """Rename, or delete, an experiment's folder; True also if missing, False if another's.

        It is this experiment's if its `events.log` is, or if it has none and bears the id as name.

        Args:
            directory: the folder.
            experiment_id: the experiment.
            new: its new path, in the same folder.

        Returns:
            Whether it was renamed or deleted, or there was none.
        """
        ...

    async def dispose(self, directory: Path, on_remaining: Callable[[int], None]) -> None:
        """Delete the folder of an experiment, a trial at a time; do nothing if there is none.

        A cancelled call ends after the current trial.

        Args:
            directory: the folder.
            on_remaining: called from another thread with the number of trials that are left.
        """
        ...


class Journal(Protocol):
    """Interface of an experiment folder's two log files, `events.log` and `nnimanager.log`.

    Writing never raises: a folder that cannot be written is logged once, and `events.log` is
    completed from the log when it is opened again.
    """

    @property
    def last_sequence(self) -> int:
        """Sequence of the last batch in `events.log`; 0: none."""
        ...

    def record(self, sequence: int, payload: bytes) -> None:
        """Buffer a batch for `events.log`; the next `flush` writes it."""
        ...

    def add_line(self, time_ms: int, level: str, logger: str, text: str) -> None:
        """Add a line to the text log; the next `flush` writes it."""
        ...

    def flush(self) -> None:
        """Write the buffered batches and lines; a failure is logged, not raised."""
        ...

    def close(self) -> None:
        """Write what is buffered, then close the files; may be called twice."""
        ...


class Journals(Protocol):
    """Interface that opens experiments' journals, and reads and repairs their event files."""

    def open(self, directory: str, *, debug: bool) -> Journal:
        """Open the journal that writes an experiment's folder; without one it discards all.

        Args:
            directory: the experiment's folder.
            debug: whether debug lines are written.
        """
        ...

    async def experiment_of(self, directory: Path) -> str | None:
        """Return the experiment id in a folder's `events.log`; empty: not ours; None: no log.

        Empty: the file is damaged, or none of ours. None: there is no log on this machine.
        """
        ...

    async def damage_of(self, directory: Path) -> str:
        """Return where `events.log` is damaged or why it is unreadable, as text; empty: whole."""
        ...

    async def torn_end_of(self, directory: Path) -> str:
        """Return a text if `events.log` ends in the middle of a record; empty: it does not.

        `damage_of` does not count that: a kill does it, and the log on the bus has the record.
        """
        ...

    async def rewrite(self, directory: Path, records: Sequence[tuple[int, bytes]]) -> bool:
        """Replace `events.log` by these records, in one step; return False, logged, on failure."""
        ...

    async def set_aside(self, directory: Path, reason: str) -> None:
        """Rename an unusable `events.log`, or a file in place of its folder `db`; log it.

        A missing folder of it is created. Both are logged, a failure too.
        """
        ...

    async def read(self, directory: Path) -> list[tuple[int, bytes]]:
        """Return (sequence, batch) of all whole records of a folder's `events.log`, in order.

        Those behind damaged bytes are among them; `damage_of` says whether there are such bytes.

        Raises:
            NotFoundError: there is no such file.
            InvalidArgumentError: it cannot be read, or is no event log.
        """
        ...


class SecretStore(Protocol):
    """Interface of the store of platforms' secret values, which no log has.

    Every method raises `FailedPreconditionError` if the disk refuses.
    """

    async def write(self, secrets_id: str, values: Mapping[str, str]) -> None:
        """Replace the secret values of an id, by their paths in the section of the platform."""
        ...

    async def read(self, secrets_id: str) -> dict[str, str]:
        """Return the secret values of an id by path; empty if it has none."""
        ...

    async def remove(self, secrets_id: str) -> None:
        """Delete the secret values of an id; do nothing if it has none."""
        ...

    async def remove_pool(self, pool: str) -> None:
        """Delete the secret values of all platforms of a pool; do nothing if it has none."""
        ...


class PlatformChecker(Protocol):
    """Interface that checks platforms before they are used, and removes leftovers from them."""

    async def check(
        self,
        sections: Sequence[config_pb2.TrainingServiceConfig | pool_pb2.PoolPlatform],
        secrets: Sequence[Mapping[str, str]],
        field: str,
    ) -> list[str]:
        """Make platforms check their sections; raise for a refused one; return warnings.

        Args:
            sections: one per platform, without secret values.
            secrets: secret values of each section, by path.
            field: of the sections in the user's file, for messages.

        Raises:
            InvalidArgumentError: a platform refuses its section, or none can be reached.
        """
        ...

    async def clean(
        self,
        sections: Sequence[config_pb2.TrainingServiceConfig | pool_pb2.PoolPlatform],
        secrets: Sequence[Mapping[str, str]],
        *,
        dry_run: bool,
    ) -> pool_service_pb2.CleanPlatformsResponse:
        """Remove leftovers of no pool from platforms, or list them (`dry_run`); may be repeated.

        Args:
            sections: one per platform, without secret values.
            secrets: secret values of each section, by path.
            dry_run: True if nothing is removed.

        Raises:
            FailedPreconditionError: the installation has no fleet.
        """
        ...


class Agents(Protocol):
    """Interface of the agent monitor that experiments use: live agents, expected agents."""

    def of_pools(self, pools: Collection[str]) -> list[str]:
        """Return the ids of these pools' agents that send presence messages and are not silent."""
        ...

    def expect(self, experiment_id: str, experiment: Experiment) -> None:
        """Monitor the agents that a just loaded experiment's log names, as if just seen.

        An unknown agent counts as just seen; an attempt that its agent does not hold is a suspect.
        """
        ...


class FileWatch(Protocol):
    """Interface of a watch that wakes a reader when a file grows, in `async with`."""

    async def changed(self) -> None:
        """Wait until the file changes after the last call, or after the start of the watch."""
        ...


class FileWatches(Protocol):
    """Interface that watches files on this machine for growth."""

    def watch(self, path: Path) -> AbstractAsyncContextManager[FileWatch]:
        """Return a watch that wakes a waiter when an existing file changes.

        Raises:
            NotFoundError: on entering, if there is no such file.
        """
        ...


class Views(Protocol):
    """Interface of a store of experiments' encoded summaries, each with its log position.

    All may be lost.

    A view may be stale: the reader compares its sequence with the end of the log.
    """

    async def put(self, experiment_id: str, sequence: int, view: bytes) -> None:
        """Store an experiment's encoded view with its log position, replacing the previous one.

        Args:
            experiment_id: the experiment.
            sequence: stream sequence of the last batch in the view; >= 0.
            view: any bytes.

        Raises:
            ServiceError: it cannot be written now.
        """
        ...

    async def get(self, experiment_ids: Collection[str]) -> dict[str, tuple[int, bytes]]:
        """Return {experiment id: (log sequence, view)} of the experiments that have a view.

        Raises:
            ServiceError: the store cannot be read now.
        """
        ...

    async def delete(self, experiment_id: str) -> None:
        """Delete an experiment's stored view; do nothing if there is none.

        Raises:
            ServiceError: it cannot be deleted now.
        """
        ...


class Presences(Protocol):
    """Interface of a store of agents' last presence messages, which expire and may be lost."""

    async def keep(self, presences: Mapping[str, bytes], ttl_s: float) -> None:
        """Store agents' encoded presence messages for ``ttl_s``, replacing their previous ones.

        Args:
            presences: by agent id.
            ttl_s: time until expiry; > 0.

        Raises:
            ServiceError: they cannot be written now.
        """
        ...

    async def forget(self, runner_id: str) -> None:
        """Delete the stored presence message of an agent; do nothing if there is none.

        Raises:
            ServiceError: it cannot be deleted now.
        """
        ...

    async def all(self) -> dict[str, bytes]:
        """Return all unexpired presence messages as {agent id: encoded message}.

        Raises:
            ServiceError: the store cannot be read now.
        """
        ...


class Peers(Protocol):
    """Interface that asks the other managers for the experiments they own."""

    async def owned(self, manager: ManagerId) -> list[experiment_pb2.Experiment]:
        """Return the proto messages of all experiments that another manager owns, in no order.

        Raises:
            ServiceError: it does not respond.
        """
        ...


class Leases(Protocol):
    """Interface of a store of leases, safe to use from several managers at once.

    A lease keeps two managers from working against each other; writes of an expired owner are
    harmless because the log compares epochs.
    """

    async def acquire(self, name: str, owner: str, ttl_s: float, above: int = 0) -> Lease | None:
        """Acquire a lease for an owner, or extend its own; None if another owner holds it.

        A repetition, e.g. after a lost response, returns the same lease.

        Args:
            name: the leased object.
            owner: the new owner.
            ttl_s: time until expiry; > 0.
            above: largest epoch known to be used. If the store lost its data, epochs continue
                there.

        Returns:
            The lease; None: another owner holds it.

        Raises:
            ServiceError: the store cannot be used now.
        """
        ...

    async def renew(self, leases: Collection[Lease], ttl_s: float) -> list[Lease]:
        """Extend leases by ``ttl_s`` in one step; return those that expired or changed owner.

        Returns:
            The leases that expired or have another owner: their former owner must stop deciding.

        Raises:
            ServiceError: the store cannot be used now.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Release a lease so that others can acquire it; do nothing if it is not held.

        Raises:
            ServiceError: the store cannot be used now.
        """
        ...

    async def holder(self, name: str) -> Lease | None:
        """Return the unexpired lease of this name; None: it is free.

        Raises:
            ServiceError: the store cannot be used now.
        """
        ...

    async def holders(self) -> dict[str, Lease]:
        """Return all unexpired leases as {name: lease}.

        Raises:
            ServiceError: the store cannot be used now.
        """
        ...


class Stage(Protocol):
    """Interface of a temporary folder for an experiment that is being loaded from an archive."""

    async def write(self, name: str, data: bytes, *, last: bool) -> None:
        """Append a piece of an archived file to the stage; pieces of a file are consecutive.

        Args:
            name: checked by `svc_manager.usecases.archive_names`.
            data: the piece.
            last: whether the file ends here.

        Raises:
            ResourceExhaustedError: there is no room.
        """
        ...

    async def records(self) -> list[tuple[int, bytes]]:
        """Return (old stream sequence, batch) of all records of the staged event log.

        Raises:
            InvalidArgumentError: there is none, or it is damaged.
        """
        ...

    def values(self) -> list[tuple[str, Path]]:
        """Return the name (the claimed hash) and the file of each staged large value."""
        ...

    def outputs(self) -> list[tuple[str, Path]]:
        """Return `<trial>/<attempt>/<file>` and the file of each staged output."""
        ...

    async def place(self, directory: Path) -> None:
        """Move the staged files to the experiment's folder; raise if that folder exists.

        Raises:
            FailedPreconditionError: ``directory`` exists.
        """
        ...

    async def discard(self) -> None:
        """Delete the stage with all files that were not placed, and close it."""
        ...


class SavedFolders(Protocol):
    """Interface that reads experiments' files for archives and stages those being loaded."""

    def files(
        self, directory: Path, experiment_id: str
    ) -> AsyncGenerator[tuple[str, bytes, bool], None]:
        """Yield the folder's files as (path, piece, last), if it holds this experiment's log.

        Yields nothing if the folder is not on this machine, or does not hold this experiment's log.
        """
        ...

    def pieces(
        self, fetch: Callable[[Path], Awaitable[None]]
    ) -> AsyncGenerator[tuple[bytes, bool], None]:
        """Fetch a file to a temporary path, yield it as (piece, last), then delete it.

        Args:
            fetch: writes the file to the given path.
        """
        ...

    async def stage(self, root: Path) -> Stage:
        """Create a temporary folder below ``root`` for the files of an experiment being loaded.

        No link below a root of experiment folders is followed.

        Raises:
            InvalidArgumentError: it cannot be written.
        """
        ...

    async def remove(self, directory: Path) -> None:
        """Delete a folder tree; failures are ignored."""
        ...
