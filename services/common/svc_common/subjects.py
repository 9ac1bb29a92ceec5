"""Factory and parser of all names of streams, subjects and consumers of the bus.

| stream | subjects | kind |
|---|---|---|
| `EXPERIMENTS` | `nni.experiment.<exp>.event` | log, kept until the experiment is deleted |
| `INBOX` | `nni.inbox.<exp>.<source>` | log, read in order, trimmed behind the slowest cursor |
| `TASKS` | `nni.task.<pool>`, `nni.retry.<pool>` | work queue, pulled; retries first |
| `LOGS` | `nni.log.<exp>.<trial>` | log, limited by age and size |
| `POOLS` | `nni.pool.<pool>.<kind>`: see `ALL_POOL_NEEDS`, … | the last of each |
| none | `nni.control.<runner>`, `nni.presence.<runner>`, `nni.live.<exp>` | not stored |
| none | `nni.manager.<boot>`: notice to check the leases again | not stored |
| none | `nni.copy.<exp>`: copy of each message that was stored in a log | not stored |
| none | `nni.copy.pool.<pool>.<kind>`: copy of each message of `POOLS` | not stored |

Every variable part is one token: an id that `check_id` accepts.
"""

import re
from typing import Final

from svc_common.errors import InvalidArgumentError

STREAM_EXPERIMENTS: Final = "EXPERIMENTS"
STREAM_INBOX: Final = "INBOX"
STREAM_TASKS: Final = "TASKS"
STREAM_LOGS: Final = "LOGS"
STREAM_POOLS: Final = "POOLS"

ALL_EVENTS: Final = "nni.experiment.*.event"
ALL_INBOXES: Final = "nni.inbox.*.*"
CLOSED_INBOXES: Final = "nni.closed.inbox"
"""Subject of the stream of INBOX messages while its messages are numbered again; it is never
published to."""
ALL_TASKS: Final = "nni.task.*"
ALL_RETRIES: Final = "nni.retry.*"
ALL_LOGS: Final = "nni.log.*.*"
ALL_POOL_NEEDS: Final = "nni.pool.*.need"
ALL_POOL_STATES: Final = "nni.pool.*.state"
ALL_POOL_DEFINITIONS: Final = "nni.pool.*.definition"
ALL_POOL_CHECKS: Final = "nni.pool.*.check"
ALL_POOL_PROBLEMS: Final = "nni.pool.*.problems"
ALL_POOL_INVITATIONS: Final = "nni.pool.*.invitations"
ALL_POOL_FRONTS: Final = "nni.pool.*.front"
ALL_POOLS: Final = "nni.pool.*.*"
ALL_PRESENCES: Final = "nni.presence.*"
ALL_CONTROLS: Final = "nni.control.*"
ALL_MANAGERS: Final = "nni.manager.*"
ALL_COPIES: Final = "nni.copy.*"
COPY_TEMPLATE: Final = "nni.copy.{{wildcard(1)}}"
"""Subject of the copy of a message of `ALL_EVENTS`, in the terms of the server."""
POOL_COPY_TEMPLATE: Final = "nni.copy.pool.{{wildcard(1)}}.{{wildcard(2)}}"
"""Subject of the copy of a message of `ALL_POOLS`, in the terms of the server."""

JETSTREAM_API: Final = "$JS.API"
IMPORTED_API: Final = "nni.api"
"""What `JETSTREAM_API` of the manager's account is called in the accounts of other users, where
that name belongs to their own account."""

COMPRESSOR: Final = "compressor"
"""Name of the compressor as a source of the INBOX and as the algorithm of compression jobs."""
NAS: Final = "nas"
"""Name of the NAS service as a source of the INBOX and as the algorithm of explorations."""
ALGORITHM_SOURCES: Final = frozenset({"dispatcher", NAS, COMPRESSOR})
"""Sources of INBOX messages of algorithms; no agent may have such an id."""

ID_LIMIT_CHARACTERS: Final = 128
"""Longest id, so that several fit into one subject."""

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\Z")
_EVENT = re.compile(r"nni\.experiment\.([^.]+)\.event\Z")
_INBOX = re.compile(r"nni\.inbox\.([^.]+)\.([^.]+)\Z")
_TASK = re.compile(r"nni\.task\.([^.]+)\Z")
_LOG = re.compile(r"nni\.log\.([^.]+)\.([^.]+)\Z")
_POOL_KINDS: Final = "need|state|definition|check|problems|invitations|front"
_POOL = re.compile(rf"nni\.pool\.([^.]+)\.(?:{_POOL_KINDS})\Z")
_POOLS = re.compile(rf"nni\.pool\.(\*|[A-Za-z0-9_][A-Za-z0-9_-]*)\.({_POOL_KINDS}|\*)\Z")
_PRESENCE = re.compile(r"nni\.presence\.([^.]+)\Z")

_checked: set[str] = set()
_CHECKED_LIMIT: Final = 100_000
"""Size of the cache of valid ids: hot paths check the same few ids for every message."""


def check_id(field: str, value: str) -> str:
    """Return an id if it is valid as a token of a subject; raise InvalidArgumentError else.

    Args:
        field: name of the id, for the error.
        value: letters, digits, `_` and `-`, not starting with `-`, at most 128 characters.

    Raises:
        InvalidArgumentError: the value is empty, too long or has another character.
    """
    if value in _checked:
        return value
    if len(value) > ID_LIMIT_CHARACTERS or not _ID.match(value):
        raise InvalidArgumentError(
            field,
            f"must be 1 to {ID_LIMIT_CHARACTERS} letters, digits, '_' or '-', "
            "and not start with '-'",
            value[: ID_LIMIT_CHARACTERS + 1],
        )
    if len(_checked) >= _CHECKED_LIMIT:
        _checked.clear()
    _checked.add(value)
    return value


def event_subject(experiment_id: str) -> str:
    """Return the subject of an experiment's log."""
    return f"nni.experiment.{check_id('experiment_id', experiment_id)}.event"


def experiment_of_event(subject: str) -> str:
    """Return the experiment id in the subject of a log's message; raise for other subjects.

    Raises:
        InvalidArgumentError: the subject is none of a log.
    """
    return _parts(_EVENT, subject)[0]


def inbox_subject(experiment_id: str, source: str) -> str:
    """Return the subject of INBOX messages of `source` (an agent, a host, a client)."""
    return f"nni.inbox.{check_id('experiment_id', experiment_id)}.{check_id('source', source)}"


def inboxes_from(source: str) -> str:
    """Return the pattern of all INBOX subjects of `source`."""
    return f"nni.inbox.*.{check_id('source', source)}"


def inbox_filter(experiment_id: str) -> str:
    """Return the pattern of all INBOX subjects of one experiment."""
    return f"nni.inbox.{check_id('experiment_id', experiment_id)}.*"


def parse_inbox(subject: str) -> tuple[str, str]:
    """Return (experiment id, source) of an INBOX subject; raise for other subjects.

    Raises:
        InvalidArgumentError: the subject is none of the INBOX.
    """
    experiment_id, source = _parts(_INBOX, subject)
    return experiment_id, source


def task_subject(pool: str) -> str:
    """Return the subject of the tasks of one pool of agents."""
    return f"nni.task.{check_id('pool', pool)}"


def pool_of_task(subject: str) -> str:
    """Return the pool in the subject of a task; raise for other subjects.

    Raises:
        InvalidArgumentError: the subject is none of a task.
    """
    return _parts(_TASK, subject)[0]


def retry_subject(pool: str) -> str:
    """Return the subject of a pool's priority tasks, pulled before the others; check its name."""
    return f"nni.retry.{check_id('pool', pool)}"


def pool_consumer(pool: str) -> str:
    """Return the name of the durable consumer that all agents of a pool share."""
    return f"pool-{check_id('pool', pool)}"


def retry_consumer(pool: str) -> str:
    """Return the name of the durable consumer of tasks that a pool's agents get before others."""
    return f"retry-{check_id('pool', pool)}"


def log_subject(experiment_id: str, trial_id: str) -> str:
    """Return the subject of the output lines of one trial."""
    return f"nni.log.{check_id('experiment_id', experiment_id)}.{check_id('trial_id', trial_id)}"


def log_filter(experiment_id: str) -> str:
    """Return the pattern of the output lines of all trials of an experiment."""
    return f"nni.log.{check_id('experiment_id', experiment_id)}.*"


def parse_log(subject: str) -> tuple[str, str]:
    """Return (experiment id, trial id) of the subject of a trial's output; raise for others.

    Raises:
        InvalidArgumentError: the subject is none of output lines.
    """
    experiment_id, trial_id = _parts(_LOG, subject)
    return experiment_id, trial_id


def pool_need_subject(pool: str) -> str:
    """Return the subject on which the manager publishes the need of a pool."""
    return f"nni.pool.{check_id('pool', pool)}.need"


def pool_state_subject(pool: str) -> str:
    """Return the subject on which the fleet publishes the state of a pool."""
    return f"nni.pool.{check_id('pool', pool)}.state"


def pool_definition_subject(pool: str) -> str:
    """Return the subject of the definition of a pool of the installation."""
    return f"nni.pool.{check_id('pool', pool)}.definition"


def pool_check_subject(pool: str) -> str:
    """Return the subject of the manager's request to check the platforms of a pool."""
    return f"nni.pool.{check_id('pool', pool)}.check"


def pool_problems_subject(pool: str) -> str:
    """Return the subject of the fleet's reply to a request to check platforms."""
    return f"nni.pool.{check_id('pool', pool)}.problems"


def pool_invitations_subject(pool: str) -> str:
    """Return the subject on which the manager publishes who may enrol agents in a pool."""
    return f"nni.pool.{check_id('pool', pool)}.invitations"


def pool_front_subject(pool: str) -> str:
    """Return the subject on which the fleet publishes the address where agents enrol in a pool."""
    return f"nni.pool.{check_id('pool', pool)}.front"


def pool_of_subject(subject: str) -> str:
    """Return the pool in the subject of a message of `POOLS`; raise for other subjects.

    Raises:
        InvalidArgumentError: the subject is none of a pool.
    """
    return check_id("pool", _parts(_POOL, subject)[0])


def pool_copies(pattern: str) -> str:
    """Return the pattern of the copies of messages of `POOLS`; raise for other patterns.

    Args:
        pattern: `nni.pool.<pool>.<kind>`; `*` stands for any pool, and for any kind.

    Raises:
        InvalidArgumentError: the pattern is none of pools.
    """
    pool, kind = _parts(_POOLS, pattern)
    return f"nni.copy.pool.{pool}.{kind}"


def control_subject(runner_id: str) -> str:
    """Return the subject of control requests to an agent."""
    return f"nni.control.{check_id('runner_id', runner_id)}"


def presence_subject(runner_id: str) -> str:
    """Return the subject of presence messages of an agent."""
    return f"nni.presence.{check_id('runner_id', runner_id)}"


def runner_of_presence(subject: str) -> str:
    """Return the agent id in the subject of a presence message; raise for other subjects.

    Raises:
        InvalidArgumentError: the subject is none of a presence message.
    """
    return _parts(_PRESENCE, subject)[0]


def manager_subject(boot_id: str) -> str:
    """Return the subject on which a manager notifies the others to check the leases."""
    return f"nni.manager.{check_id('boot_id', boot_id)}"


def copy_subject(experiment_id: str) -> str:
    """Return the subject of the copies of the messages of an experiment's log."""
    return f"nni.copy.{check_id('experiment_id', experiment_id)}"


def live_subject(experiment_id: str) -> str:
    """Return the subject of live updates of the page, which are not stored."""
    return f"nni.live.{check_id('experiment_id', experiment_id)}"


def _parts(pattern: re.Pattern[str], subject: str) -> tuple[str, ...]:
    match = pattern.match(subject)
    if match is None:
        raise InvalidArgumentError("subject", f"must match {pattern.pattern!r}", subject)
    return match.groups()
