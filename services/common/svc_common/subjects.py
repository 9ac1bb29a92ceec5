"""Names of all streams, subjects and consumers of the bus: made and parsed here only.

| stream | subjects | kind |
|---|---|---|
| `EXPERIMENTS` | `nni.experiment.<exp>.event` | log, kept until the experiment is deleted |
| `INBOX` | `nni.inbox.<exp>.<source>` | log, read in order, trimmed behind the slowest cursor |
| `TASKS` | `nni.task.<pool>` | work queue, pulled |
| `LOGS` | `nni.log.<exp>.<trial>` | log, limited by age and size |
| none | `nni.control.<runner>`, `nni.presence.<runner>`, `nni.live.<exp>` | not stored |
| none | `nni.manager.<boot>`: look at the leases again | not stored |

Every variable part is one token: an id checked by `check_id`.
"""

import re
from typing import Final

from svc_common.errors import InvalidArgumentError

STREAM_EXPERIMENTS: Final = "EXPERIMENTS"
STREAM_INBOX: Final = "INBOX"
STREAM_TASKS: Final = "TASKS"
STREAM_LOGS: Final = "LOGS"

ALL_EVENTS: Final = "nni.experiment.*.event"
ALL_INBOXES: Final = "nni.inbox.*.*"
ALL_TASKS: Final = "nni.task.*"
ALL_LOGS: Final = "nni.log.*.*"
ALL_PRESENCES: Final = "nni.presence.*"
ALL_CONTROLS: Final = "nni.control.*"
ALL_MANAGERS: Final = "nni.manager.*"

ALGORITHM_SOURCES: Final = frozenset({"dispatcher", "nas", "compressor"})
"""Who writes to INBOXes in the name of algorithms; no agent has such an id."""

ID_LIMIT_CHARACTERS: Final = 128
"""Longest id; leaves room for several in one subject."""

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*\Z")
_EVENT = re.compile(r"nni\.experiment\.([^.]+)\.event\Z")
_INBOX = re.compile(r"nni\.inbox\.([^.]+)\.([^.]+)\Z")
_TASK = re.compile(r"nni\.task\.([^.]+)\Z")
_LOG = re.compile(r"nni\.log\.([^.]+)\.([^.]+)\Z")
_PRESENCE = re.compile(r"nni\.presence\.([^.]+)\Z")

_checked: set[str] = set()
_CHECKED_LIMIT: Final = 100_000
"""Ids remembered as valid: a hot path checks the same few ids for every message."""


def check_id(field: str, value: str) -> str:
    """Return `value` if it can be one token of a subject.

    Args:
        field: what the id is called, for the error.
        value: letters, digits, `_` and `-`, not starting with `-`, at most 128 characters.

    Raises:
        InvalidArgumentError: it is empty, too long or holds another character.
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
    """Give the subject of an experiment's log."""
    return f"nni.experiment.{check_id('experiment_id', experiment_id)}.event"


def experiment_of_event(subject: str) -> str:
    """Give the experiment whose log has this subject.

    Raises:
        InvalidArgumentError: it is no subject of a log.
    """
    return _parts(_EVENT, subject)[0]


def inbox_subject(experiment_id: str, source: str) -> str:
    """Give the subject on which `source` (a runner, a host, a client) writes to the manager."""
    return f"nni.inbox.{check_id('experiment_id', experiment_id)}.{check_id('source', source)}"


def inboxes_from(source: str) -> str:
    """Give the pattern of everything that `source` writes to managers."""
    return f"nni.inbox.*.{check_id('source', source)}"


def inbox_filter(experiment_id: str) -> str:
    """Give the pattern of everything sent to the manager about one experiment."""
    return f"nni.inbox.{check_id('experiment_id', experiment_id)}.*"


def parse_inbox(subject: str) -> tuple[str, str]:
    """Give experiment and source of an INBOX subject.

    Raises:
        InvalidArgumentError: it is no subject of the INBOX.
    """
    experiment_id, source = _parts(_INBOX, subject)
    return experiment_id, source


def task_subject(pool: str) -> str:
    """Give the subject of the tasks of one pool of runners."""
    return f"nni.task.{check_id('pool', pool)}"


def pool_of_task(subject: str) -> str:
    """Give the pool that a task was published to.

    Raises:
        InvalidArgumentError: it is no subject of a task.
    """
    return _parts(_TASK, subject)[0]


def pool_consumer(pool: str) -> str:
    """Give the durable consumer that all agents of a pool share."""
    return f"pool-{check_id('pool', pool)}"


def log_subject(experiment_id: str, trial_id: str) -> str:
    """Give the subject of the output lines of one trial."""
    return f"nni.log.{check_id('experiment_id', experiment_id)}.{check_id('trial_id', trial_id)}"


def log_filter(experiment_id: str) -> str:
    """Give the pattern of the output lines of all trials of an experiment."""
    return f"nni.log.{check_id('experiment_id', experiment_id)}.*"


def parse_log(subject: str) -> tuple[str, str]:
    """Give experiment and trial of a subject of output lines.

    Raises:
        InvalidArgumentError: it is no such subject.
    """
    experiment_id, trial_id = _parts(_LOG, subject)
    return experiment_id, trial_id


def control_subject(runner_id: str) -> str:
    """Give the subject on which an agent takes orders."""
    return f"nni.control.{check_id('runner_id', runner_id)}"


def presence_subject(runner_id: str) -> str:
    """Give the subject on which an agent says that it is there."""
    return f"nni.presence.{check_id('runner_id', runner_id)}"


def runner_of_presence(subject: str) -> str:
    """Give the runner that a presence message comes from.

    Raises:
        InvalidArgumentError: it is no subject of a presence.
    """
    return _parts(_PRESENCE, subject)[0]


def manager_subject(boot_id: str) -> str:
    """Give the subject on which a manager calls the others to look who owns what."""
    return f"nni.manager.{check_id('boot_id', boot_id)}"


def live_subject(experiment_id: str) -> str:
    """Give the subject of what the page shows live and nobody keeps."""
    return f"nni.live.{check_id('experiment_id', experiment_id)}"


def _parts(pattern: re.Pattern[str], subject: str) -> tuple[str, ...]:
    match = pattern.match(subject)
    if match is None:
        raise InvalidArgumentError("subject", f"must match {pattern.pattern!r}", subject)
    return match.groups()
