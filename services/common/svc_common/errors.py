"""Errors that services raise and callers can act on; they know no transport.

    ServiceError
    ├── InvalidArgumentError      a field of a request breaks a rule
    ├── UnauthenticatedError      the caller did not say who it is
    ├── PermissionDeniedError     the caller may not do this
    ├── NotFoundError             nothing has this id
    ├── AlreadyExistsError        something has this id already
    ├── FailedPreconditionError   not in this state; another call must come first
    ├── AbortedError              another writer came first
    │   └── LostOwnershipError    another manager owns the experiment now
    ├── ResourceExhaustedError    a limit is reached (quota, slots, disk, message size)
    ├── UnavailableError          a peer is away; the same call may work later
    └── DataLossError             what is stored is not what was stored there

`svc_common.rpc.server` turns each into a gRPC status in one table; adapters turn the errors of
their drivers into these.
"""

from collections.abc import Mapping


class ServiceError(Exception):
    """Base of all errors that a service answers on purpose.

    Attributes:
        message: one sentence for a person: what is wrong and what to change.
        facts: the same for a program; plain strings, sent to the caller as error details.
    """

    def __init__(self, message: str, facts: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.facts: dict[str, str] = dict(facts or {})


class InvalidArgumentError(ServiceError):
    """A field of a request breaks a rule.

    Args:
        field: path of the field as the caller wrote it, e.g. `search_space.lr._value`.
        rule: what must hold, e.g. `must be >= 1`.
        value: the offending value, shortened by the caller if it is long; None if there is none.
        remedy: what to do instead; empty if the rule says it already.
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


class UnauthenticatedError(ServiceError):
    """The caller sent no credentials, or ones that are not known here."""


class PermissionDeniedError(ServiceError):
    """The caller is known but may not do this."""


class NotFoundError(ServiceError):
    """Nothing of this kind has this id.

    Args:
        kind: noun of the domain, e.g. `experiment`.
        id_: the id asked for.
    """

    def __init__(self, kind: str, id_: str) -> None:
        super().__init__(f"there is no {kind} {id_!r}", {"kind": kind, "id": id_})
        self.kind = kind
        self.id = id_


class AlreadyExistsError(ServiceError):
    """Something of this kind has this id already.

    Args:
        kind: noun of the domain.
        id_: the id that is taken.
    """

    def __init__(self, kind: str, id_: str) -> None:
        super().__init__(f"there is already a {kind} {id_!r}", {"kind": kind, "id": id_})
        self.kind = kind
        self.id = id_


class FailedPreconditionError(ServiceError):
    """The system is not in a state that allows this; the message says which state would."""


class AbortedError(ServiceError):
    """Another writer came first; reading again and repeating may work."""


class LostOwnershipError(AbortedError):
    """Another manager appended to the experiment's log: this one no longer owns it.

    Args:
        experiment_id: the experiment.
        expected_sequence: stream sequence that the log should have ended with.
        found_sequence: stream sequence that it ended with.
        found_epoch: epoch of the writer of that last message.
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
    """A limit is reached; the message names the limit and how to raise it."""


class UnavailableError(ServiceError):
    """A peer that is needed is away; the same call may work later."""


class DataLossError(ServiceError):
    """What is stored is not what was stored there: it was damaged or changed.

    Args:
        key: where it is stored.
        expected_sha256: of what was stored, in hexadecimal digits.
        found_sha256: of what is there.
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
