"""What the manager needs from outside, as promises; the bus and the byte store have their own."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from nni_proto.experiment.v1 import config_pb2, experiment_pb2
from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from svc_common.errors import FailedPreconditionError
from svc_manager.domain.lease import Lease, ManagerId
from svc_manager.domain.state import Experiment


class PortTakenError(FailedPreconditionError):
    """A listener cannot open because its port is in use.

    Args:
        port: the port.
        holder: who holds it, in words: `experiment abcd1234` or `program nginx (pid 12)`;
            empty if that cannot be told.
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
    """Web servers: a base one for all experiments, and one per experiment that wants a port."""

    async def open_listener(self, port: int, experiment_id: str, url_prefix: str) -> None:
        """Serve one experiment on a port of its own; returns when it accepts connections.

        Opening the same listener again changes nothing.

        Args:
            port: 1 to 65535.
            experiment_id: what `/api/v1/nni/*` means there.
            url_prefix: path under which all is served, without slashes at its ends; may be empty.

        Raises:
            PortTakenError: the port is in use; the error names the holder.
        """
        ...

    async def close_listener(self, experiment_id: str) -> None:
        """Stop serving an experiment on its own port; nothing happens if it has none.

        Returns at once; a request in flight on that listener still gets its answer.
        """
        ...

    def urls(self, port: int, url_prefix: str) -> list[str]:
        """Give the addresses under which a listener can be reached, loopback first."""
        ...


class AlgorithmChecker(Protocol):
    """The dispatcher's word on an algorithm, before an experiment is created."""

    async def check(
        self,
        config: config_pb2.ExperimentConfig,
        interpreter: str,
        *,
        replaces_space: bool = False,
    ) -> tuple[list[str], str]:
        """Check names, class arguments, search space, and points that are to be tried first.

        Args:
            config: what is to be checked.
            interpreter: that will run custom classes.
            replaces_space: the experiment runs, and only its search space is new.

        Returns:
            Warnings, and the optimize mode (`minimize`, `maximize` or empty).

        Raises:
            InvalidArgumentError: it was refused; the message says why.
            UnavailableError: the dispatcher cannot be reached.
        """
        ...


class Analyst(Protocol):
    """The mathematics of results: the dispatcher."""

    async def importance(
        self, request: pb.MeasureImportanceRequest
    ) -> pb.MeasureImportanceResponse:
        """Tell which hyperparameters matter.

        Raises:
            FailedPreconditionError: there are too few results.
            UnavailableError: the dispatcher cannot be reached.
        """
        ...

    async def front(self, request: pb.FindParetoFrontRequest) -> pb.FindParetoFrontResponse:
        """Tell which results no other one beats in every objective.

        Raises:
            UnavailableError: the dispatcher cannot be reached.
        """
        ...

    async def broken(self, request: pb.CheckConfigurationsRequest) -> Sequence[str]:
        """Tell per configuration which constraint it breaks; empty if none.

        Raises:
            UnavailableError: the dispatcher cannot be reached.
        """
        ...


class TrialIds(Protocol):
    """Draws ids; the only randomness that decisions use."""

    def experiment_id(self, request_id: str = "", draw: int = 0) -> str:
        """Draw 8 characters of [a-z0-9].

        Args:
            request_id: what is asked again gives the same id; empty: another one each time.
            draw: how many ids of this request are taken.
        """
        ...

    def trial_id(self) -> str:
        """Draw 5 characters of [A-Za-z0-9]; not necessarily unused."""
        ...

    def seed(self) -> int:
        """Draw a seed for an algorithm, 0 to 2**31 - 1."""
        ...


class Folders(Protocol):
    """Experiment folders on this machine (`<root>/<id>`)."""

    async def create(
        self, directory: Path, environment: Mapping[str, str], interpreter: str
    ) -> str:
        """Make the tree of an experiment and its `environment.json` (0600).

        Returns:
            SHA-256 of the environment, in hexadecimal digits.

        Raises:
            InvalidArgumentError: the folder cannot be made, or the disk is full.
        """
        ...

    async def remove(self, directory: Path) -> None:
        """Delete the whole tree; nothing happens if there is none."""
        ...


class Journal(Protocol):
    """What an experiment's folder keeps of it: `db/events.log` and `log/nnimanager.log`.

    Writing never raises: a folder that cannot be written is reported once, and `events.log` is
    completed from the log when it is opened again.
    """

    @property
    def last_sequence(self) -> int:
        """Sequence of the last batch in `events.log`; 0: none."""
        ...

    def record(self, sequence: int, payload: bytes) -> None:
        """Append a batch that is in the log."""
        ...

    def add_line(self, time_ms: int, level: str, logger: str, text: str) -> None:
        """Add a line to the text log; it is written by the next `flush`."""
        ...

    def flush(self) -> None:
        """Write what was said and recorded."""
        ...

    def close(self) -> None:
        """Close the files; may be called twice."""
        ...


class Journals(Protocol):
    """Opens journals."""

    def open(self, directory: str, *, debug: bool) -> Journal:
        """Open the journal in an experiment's folder; without a folder nothing is kept.

        Args:
            directory: the experiment's folder.
            debug: write debug lines, too.
        """
        ...

    async def read(self, directory: Path) -> list[tuple[int, bytes]]:
        """Give (sequence, batch) of all whole records of `events.log`.

        Raises:
            NotFoundError: there is no such file.
        """
        ...


class Agents(Protocol):
    """The agents that have been heard of."""

    def of_pools(self, pools: Collection[str]) -> list[str]:
        """Give the ids of the living agents of some pools."""
        ...

    def expect(self, experiment_id: str, experiment: Experiment) -> None:
        """Watch the agents that an experiment's log names: it was just taken over.

        One that has not been heard of counts as just seen; an attempt that its agent does not hold
        is suspected to be gone.
        """
        ...


class FileWatch(Protocol):
    """Tells that a file has grown; closed with `async with`."""

    async def changed(self) -> None:
        """Return once the file has changed since the last call, or since the watch began."""
        ...


class FileWatches(Protocol):
    """Watches files of this machine."""

    def watch(self, path: Path) -> AbstractAsyncContextManager[FileWatch]:
        """Watch an existing file.

        Raises:
            NotFoundError: on entering, if there is no such file.
        """
        ...


class Views(Protocol):
    """What lists show of experiments, each with its place in the log; all of it can be lost.

    A view may be stale: the reader compares its sequence with the end of the log.
    """

    async def put(self, experiment_id: str, sequence: int, view: bytes) -> None:
        """Keep a view, in place of the one before.

        Args:
            experiment_id: which experiment.
            sequence: stream sequence of the last batch that the view knows; >= 0.
            view: any bytes.

        Raises:
            ServiceError: it cannot be kept now.
        """
        ...

    async def get(self, experiment_ids: Collection[str]) -> dict[str, tuple[int, bytes]]:
        """Give sequence and view of each of these experiments that has one.

        Raises:
            ServiceError: it cannot be told now.
        """
        ...

    async def delete(self, experiment_id: str) -> None:
        """Forget a view; nothing happens if there is none.

        Raises:
            ServiceError: it cannot be forgotten now.
        """
        ...


class Presences(Protocol):
    """What agents said last, each for a while; all of it can be lost and is heard again."""

    async def keep(self, presences: Mapping[str, bytes], ttl_s: float) -> None:
        """Keep what these agents said, in place of what they said before.

        Args:
            presences: by the id of the agent.
            ttl_s: how long to keep it; > 0.

        Raises:
            ServiceError: it cannot be kept now.
        """
        ...

    async def forget(self, runner_id: str) -> None:
        """Forget an agent; nothing happens if nothing is kept of it.

        Raises:
            ServiceError: it cannot be forgotten now.
        """
        ...

    async def all(self) -> dict[str, bytes]:
        """Give everything that is kept, by the id of the agent.

        Raises:
            ServiceError: it cannot be told now.
        """
        ...


class Peers(Protocol):
    """The other managers of this installation."""

    async def owned(self, manager: ManagerId) -> list[experiment_pb2.Experiment]:
        """Give the experiments that a manager owns, as clients see them, in no order.

        Raises:
            ServiceError: it does not answer.
        """
        ...


class Leases(Protocol):
    """Who may decide on what; safe to use from several managers at once.

    A lease keeps two managers from working against each other; what makes a late word of an
    expired owner harmless is its epoch, which whoever stores the word compares.
    """

    async def acquire(self, name: str, owner: str, ttl_s: float, above: int = 0) -> Lease | None:
        """Take a lease, or prolong one's own.

        Repeating it, e.g. after an answer that was lost, gives the same lease.

        Args:
            name: what it is on.
            owner: who takes it.
            ttl_s: until when it holds, from now on; > 0.
            above: largest epoch known to have been used. If all was lost here, epochs go on
                from there.

        Returns:
            The lease; None: somebody else has it.

        Raises:
            ServiceError: it cannot be told now.
        """
        ...

    async def renew(self, leases: Collection[Lease], ttl_s: float) -> list[Lease]:
        """Prolong leases, all in one step.

        Returns:
            Those that have expired or are somebody else's: whoever had them must stop deciding.

        Raises:
            ServiceError: it cannot be told now.
        """
        ...

    async def release(self, lease: Lease) -> None:
        """Give a lease back; nothing happens if it is not held any more.

        Raises:
            ServiceError: it cannot be given back now.
        """
        ...

    async def holder(self, name: str) -> Lease | None:
        """Give the lease that is held; None: nobody holds it.

        Raises:
            ServiceError: it cannot be told now.
        """
        ...

    async def holders(self) -> dict[str, Lease]:
        """Give all leases that are held, by name.

        Raises:
            ServiceError: it cannot be told now.
        """
        ...


class Stage(Protocol):
    """A place for the files of an experiment that is being loaded; nobody else looks there."""

    async def write(self, name: str, data: bytes, *, last: bool) -> None:
        """Add a piece to a file; the pieces of one follow each other.

        Args:
            name: checked by `svc_manager.usecases.archive_names`.
            data: the piece.
            last: the file ends here.

        Raises:
            ResourceExhaustedError: there is no room.
        """
        ...

    async def records(self) -> list[tuple[int, bytes]]:
        """Give (old stream sequence, batch) of the log that came.

        Raises:
            InvalidArgumentError: there is none, or it is damaged.
        """
        ...

    def values(self) -> list[tuple[str, Path]]:
        """Give the name (their hash, as claimed) and the file of the large values that came."""
        ...

    def outputs(self) -> list[tuple[str, Path]]:
        """Give `<trial>/<attempt>/<file>` and the file of what trials wrote on other machines."""
        ...

    async def place(self, directory: Path) -> None:
        """Make what came for the experiment's folder that folder, with all its parts.

        Raises:
            FailedPreconditionError: something is there.
        """
        ...

    async def discard(self) -> None:
        """Remove all that was not placed."""
        ...


class SavedFolders(Protocol):
    """Folders of experiments, to be read whole and to be made."""

    def files(self, directory: Path) -> AsyncGenerator[tuple[str, bytes, bool], None]:
        """Give the files that travel, piece by piece: path in the folder, bytes, last piece.

        Nothing if the folder is not on this machine.
        """
        ...

    def pieces(
        self, fetch: Callable[[Path], Awaitable[None]]
    ) -> AsyncGenerator[tuple[bytes, bool], None]:
        """Give a file piece by piece, with the word whether it is the last; then forget it.

        Args:
            fetch: writes the file to the path that it is given.
        """
        ...

    async def stage(self, root: Path) -> Stage:
        """Make a stage below the folder that will hold the experiment's.

        Raises:
            InvalidArgumentError: it cannot be written.
        """
        ...

    async def remove(self, directory: Path) -> None:
        """Remove a folder."""
        ...
