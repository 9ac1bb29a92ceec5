"""Claims of tasks, and the state folded from a journal of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias


class AttemptKey(NamedTuple):
    """Experiment, trial and attempt number: the key of an attempt."""

    experiment_id: str
    trial_id: str
    attempt: int
    """1-based."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Process id with start time, so that a reused id is recognised."""

    pid: int
    start_time: int
    """Field 22 of `/proc/<pid>/stat`: clock ticks since the machine started."""


@dataclass(slots=True)
class Claim:
    """Claimed task as recorded in the journal: attempt, token, process, next report."""

    key: AttemptKey
    claim_id: str
    token: str = field(repr=False)
    """Secret of the trial on its socket; also in the environment of all its children."""
    ack_subject: str
    """Subject on which the task is acknowledged; that of the latest delivery."""
    leader: ProcessIdentity | None = None
    """Leader of its process group, once started."""
    next_sequence: int = 0
    """Reports numbered below this have left the spool."""
    ended: bool = False
    """Its last report is in the spool or acknowledged."""


class TaskDecision(Enum):
    """Decision about a delivered task: new, already running on this agent, or ended on it."""

    TAKE = "take"
    RUNNING = "running"
    """Runs here already: only the new acknowledgement subject counts."""
    ENDED = "ended"
    """Ran here and has ended: acknowledge, do not run again."""


def decide_task(
    key: AttemptKey, running: Iterable[AttemptKey], ended: Iterable[AttemptKey]
) -> TaskDecision:
    """Decide whether a delivered task is new, runs on this agent, or has ended on it."""
    if key in running:
        return TaskDecision.RUNNING
    return TaskDecision.ENDED if key in ended else TaskDecision.TAKE


def is_outdated(order_sequence: int, task_sequence: int) -> bool:
    """Return whether an order's log position is before that of the task it is about.

    The sender may be a manager that was paused while another one took over, or the order may be
    older than a resume of the experiment.

    Args:
        order_sequence: log position of the order's sender; 0: unknown, never outdated.
        task_sequence: log position of the task's sender.
    """
    return 0 < order_sequence < task_sequence


@dataclass(frozen=True, slots=True)
class Claimed:
    """Journal record: a task was claimed, with its token and acknowledgement subject."""

    key: AttemptKey
    claim_id: str
    token: str = field(repr=False)
    ack_subject: str


@dataclass(frozen=True, slots=True)
class Redelivered:
    """Journal record: a claimed task was delivered again, with a new subject."""

    claim_id: str
    ack_subject: str


@dataclass(frozen=True, slots=True)
class Started:
    """Journal record: the process of a claim was started and leads its own group."""

    claim_id: str
    leader: ProcessIdentity


@dataclass(frozen=True, slots=True)
class Progressed:
    """Journal record: reports of a claim below this number have left the spool."""

    claim_id: str
    next_sequence: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Journal record: the last report of a claim is in the spool."""

    claim_id: str


@dataclass(frozen=True, slots=True)
class Closed:
    """Journal record: the task was acknowledged; the claim may be forgotten."""

    claim_id: str


@dataclass(frozen=True, slots=True)
class ServerStarted:
    """Journal record: a process that starts trials (warm interpreter or spawner) was started."""

    leader: ProcessIdentity


@dataclass(frozen=True, slots=True)
class ServerEnded:
    """Journal record: a process that starts trials has ended."""

    leader: ProcessIdentity


@dataclass(frozen=True, slots=True)
class DirectoryKnown:
    """Journal record: the folder of an experiment's trials; empty: removed."""

    experiment_id: str
    directory: str
    """Empty: removed."""


JournalRecord: TypeAlias = (
    Claimed
    | Redelivered
    | Started
    | Progressed
    | Ended
    | Closed
    | ServerStarted
    | ServerEnded
    | DirectoryKnown
)


@dataclass(slots=True)
class JournalState:
    """Open claims, process servers and experiment folders, folded from the journal."""

    claims: dict[str, Claim] = field(default_factory=dict)
    """Claims that are not closed, by claim id."""
    servers: list[ProcessIdentity] = field(default_factory=list)
    """Those that may run."""
    directories: dict[str, str] = field(default_factory=dict)
    """Folders by experiment."""

    def fold(self, record: JournalRecord) -> None:
        """Apply a journal record to claims, servers and folders; ignore unknown claims."""
        match record:
            case Claimed(key, claim_id, token, ack_subject):
                self.claims[claim_id] = Claim(key, claim_id, token, ack_subject)
            case Closed(claim_id):
                self.claims.pop(claim_id, None)
            case ServerStarted(leader):
                self.servers.append(leader)
            case ServerEnded(leader):
                self.servers = [server for server in self.servers if server != leader]
            case DirectoryKnown(experiment_id, directory):
                if directory:
                    self.directories[experiment_id] = directory
                else:
                    self.directories.pop(experiment_id, None)
            case _:
                self._fold_change(record)

    def _fold_change(self, record: Redelivered | Started | Progressed | Ended) -> None:
        claim = self.claims.get(record.claim_id)
        if claim is None:
            return
        match record:
            case Redelivered(_, ack_subject):
                claim.ack_subject = ack_subject
            case Started(_, leader):
                claim.leader = leader
            case Progressed(_, next_sequence):
                claim.next_sequence = next_sequence
            case Ended(_):
                claim.ended = True

    def records(self) -> list[JournalRecord]:
        """Return the fewest journal records that rebuild this state."""
        records: list[JournalRecord] = [
            DirectoryKnown(experiment_id, directory)
            for experiment_id, directory in self.directories.items()
        ]
        records += [ServerStarted(leader) for leader in self.servers]
        for claim in self.claims.values():
            records.append(Claimed(claim.key, claim.claim_id, claim.token, claim.ack_subject))
            if claim.leader is not None:
                records.append(Started(claim.claim_id, claim.leader))
            if claim.next_sequence:
                records.append(Progressed(claim.claim_id, claim.next_sequence))
            if claim.ended:
                records.append(Ended(claim.claim_id))
        return records
