"""Errors that services raise on purpose; independent of any transport.

    ServiceError
    ├── InvalidArgumentError      a field of a request breaks a rule
    ├── UnauthenticatedError      the caller has no valid credentials
    ├── PermissionDeniedError     the caller may not do this
    ├── NotFoundError             no object has this id
    ├── AlreadyExistsError        an object has this id already
    ├── FailedPreconditionError   not allowed in this state; another call must come first
    ├── AbortedError              another writer was first
    │   └── LostOwnershipError    another manager owns the experiment now
    ├── ResourceExhaustedError    a limit is reached (quota, slots, message size)
    │   └── OutOfRoomError        a disk is full; the same call succeeds once there is room
    ├── UnavailableError          a peer does not answer; the same call may succeed later
    └── DataLossError             a blob is not what was stored

`svc_common.rpc.server` maps each to a gRPC status in one table; adapters map the errors of their
drivers to these.
"""

from collections.abc import Mapping
from typing import Self


class ServiceError(Exception):
    """Base class of the errors that a service raises on purpose.

    Attributes:
        message: one sentence for the user: what is wrong and what to change.
        facts: the same as strings for a program, sent to the caller as error details.
    """

    def __init__(self, message: str, facts: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.facts: dict[str, str] = dict(facts or {})


class InvalidArgumentError(ServiceError):
    """Error of a request's field that breaks a rule; names field, rule, value and remedy.

    Args:
        field: path of the field as the caller wrote it, e.g. `search_space.lr._value`.
        rule: what must hold, e.g. `must be >= 1`.
        value: the value that breaks it, shortened by the caller if it is long; None: not shown.
        remedy: what to do instead; empty if the rule says so.
    """

    def __init__(
        self, field: str, rule: str, value: object | None = None, remedy: str = ""
    ) -> None:
        shown = "" if value is None else f", got {value!r}"
        advice = f"; {remedy}" if remedy else ""
        super().__init__(
            f"{field} {rule}{shown}{advice}",
            {"field": field, "rule": rule, "value": "" if value is None else repr(value)}
            | ({"remedy": remedy} if remedy else {}),
        )
        self.field = field
        self.rule = rule
        self.value = value
        self.remedy = remedy

    @classmethod
    def restored(cls, message: str, facts: Mapping[str, str]) -> Self:
        """Rebuild this error from a message and facts that another process sent."""
        error = cls(facts["field"], facts.get("rule", ""), None, facts.get("remedy", ""))
        error.message = message
        error.args = (message,)
        error.facts = dict(facts)
        return error


class UnauthenticatedError(ServiceError):
    """Error: the caller sent no credentials, or unknown ones."""


class PermissionDeniedError(ServiceError):
    """Error: the caller is authenticated but has no permission for this."""


class NotFoundError(ServiceError):
    """Error of a request for an object that does not exist; names its kind and id.

    Args:
        kind: kind of the object, e.g. `experiment`.
        id_: the requested id.
    """

    def __init__(self, kind: str, id_: str) -> None:
        super().__init__(f"there is no {kind} {id_!r}", {"kind": kind, "id": id_})
        self.kind = kind
        self.id = id_


class AlreadyExistsError(ServiceError):
    """Error of a request to create an object whose id is taken; names its kind and id.

    Args:
        kind: kind of the object.
        id_: the id that is taken.
    """

    def __init__(self, kind: str, id_: str) -> None:
        super().__init__(f"there is already a {kind} {id_!r}", {"kind": kind, "id": id_})
        self.kind = kind
        self.id = id_


class FailedPreconditionError(ServiceError):
    """Error: the state of the system does not allow this; the message names a state that would."""


class AbortedError(ServiceError):
    """Error: another writer was first; reading again and repeating may succeed."""


class LostOwnershipError(AbortedError):
    """Error of an append to an experiment's log to which another manager has appended.

    Args:
        experiment_id: the experiment.
        expected_sequence: expected stream sequence of the log's last message.
        found_sequence: stream sequence of that message.
        found_epoch: epoch of its writer.
    """

    def __init__(
        self,
        experiment_id: str,
        *,
        expected_sequence: int,
        found_sequence: int,
        found_epoch: int,
    ) -> None:
        super().__init__(
            f"another manager owns experiment {experiment_id!r}: its log ends with message "
            f"{found_sequence} of epoch {found_epoch}, expected {expected_sequence}",
            {
                "experiment": experiment_id,
                "expected_sequence": str(expected_sequence),
                "found_sequence": str(found_sequence),
                "found_epoch": str(found_epoch),
            },
        )
        self.experiment_id = experiment_id
        self.expected_sequence = expected_sequence
        self.found_sequence = found_sequence
        self.found_epoch = found_epoch


class ResourceExhaustedError(ServiceError):
    """Error: a limit is reached; the message names the limit and how to raise it."""


class OutOfRoomError(ResourceExhaustedError):
    """Error: a store has no room; the same call succeeds once there is some."""


class UnavailableError(ServiceError):
    """Error: a required peer does not answer; the same call may succeed later."""


class DataLossError(ServiceError):
    """Error of a read blob whose hash is not that of the stored content.

    Args:
        key: of the blob.
        expected_sha256: of the stored content, in hexadecimal digits.
        found_sha256: of the content that was read.
    """

    def __init__(self, key: str, expected_sha256: str, found_sha256: str) -> None:
        super().__init__(
            f"what is stored as {key!r} is damaged: its SHA-256 is {found_sha256}, expected "
            f"{expected_sha256}; delete it and store it again",
            {"key": key, "expected_sha256": expected_sha256, "found_sha256": found_sha256},
        )
        self.key = key
        self.expected_sha256 = expected_sha256
        self.found_sha256 = found_sha256
