"""Permissions of each kind of process at the bus: users of NATS and their subjects.

A user subscribes only to what it needs and to answers below its own name (`_INBOX.<user>.>`).
Only the manager can write an experiment's log, make or change streams and consumers, or
give orders; an agent can read tasks of its own pool and orders to itself, and nothing else.

An agent must not make consumers, not even of its pool: a consumer may deliver to any subject of
the account, and so around the permissions of who made it.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from svc_common import subjects
from svc_common.errors import InvalidArgumentError

MANAGER: Final = "manager"
DISPATCHER: Final = "dispatcher"
ANY_RUNNER: Final = "*"
"""Stands for the ids of all agents of a pool that share one user, as replicas of a container do.
That user has no access to other pools or to subjects of services, but to the orders of each of
these agents."""


@dataclass(frozen=True, slots=True)
class BusUser:
    """User of the bus with the subjects that it may use."""

    name: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    never_publish: tuple[str, ...] = ()
    """Exceptions from `publish`."""


def manager_user(name: str = MANAGER) -> BusUser:
    """Return the user of managers: all subjects of NNI, streams and consumers included."""
    answers = _answers(name)
    return BusUser(name, ("nni.>", "$JS.>", answers), ("nni.>", answers))


def dispatcher_user(name: str = DISPATCHER) -> BusUser:
    """Return the user of dispatchers: reads all logs, publishes to INBOXes under its name."""
    stream = subjects.STREAM_EXPERIMENTS
    answers = _answers(name)
    return BusUser(
        name,
        (
            subjects.inboxes_from(DISPATCHER),
            f"$JS.API.STREAM.INFO.{stream}",
            f"$JS.API.STREAM.MSG.GET.{stream}",
            f"$JS.API.CONSUMER.CREATE.{stream}",
            f"$JS.API.CONSUMER.CREATE.{stream}.>",
            f"$JS.FC.{stream}.>",
            answers,
        ),
        (answers,),
    )


def runner_user(name: str, pool: str, runner_id: str = ANY_RUNNER) -> BusUser:
    """Return the user of an agent.

    Args:
        name: of the user, one token of a subject.
        pool: whose tasks it may pull.
        runner_id: which agent it is; `ANY_RUNNER`: all agents of the pool share the user.

    Raises:
        InvalidArgumentError: a name cannot be part of a subject, or is that of a service.
    """
    if runner_id in subjects.ALGORITHM_SOURCES:
        raise InvalidArgumentError("runner_id", "must not be that of a service", runner_id)
    if runner_id == ANY_RUNNER:
        inboxes, presence, control = (
            subjects.ALL_INBOXES,
            subjects.ALL_PRESENCES,
            subjects.ALL_CONTROLS,
        )
    else:
        inboxes, presence, control = (
            subjects.inboxes_from(runner_id),
            subjects.presence_subject(runner_id),
            subjects.control_subject(runner_id),
        )
    consumer = f"{subjects.STREAM_TASKS}.{subjects.pool_consumer(pool)}"
    answers = _answers(name)
    return BusUser(
        name,
        (
            inboxes,
            presence,
            subjects.ALL_LOGS,
            f"$JS.API.CONSUMER.MSG.NEXT.{consumer}",
            f"$JS.ACK.{consumer}.>",
            answers,
        ),
        (control, answers),
        tuple(subjects.inboxes_from(source) for source in sorted(subjects.ALGORITHM_SOURCES)),
    )


def users_block(users: Iterable[tuple[BusUser, str]]) -> str:
    """Return the part of a server's configuration that admits these users only.

    Args:
        users: each with its password; one that starts with `$` is the name of a variable of the
            server's environment.
    """
    lines = [_user_lines(user, password) for user, password in users]
    return "authorization {\n  users: [\n" + "".join(lines) + "  ]\n}\n"


def _user_lines(user: BusUser, password: str) -> str:
    allowed = f"allow: {json.dumps(list(user.publish))}"
    denied = f", deny: {json.dumps(list(user.never_publish))}" if user.never_publish else ""
    secret = password if password.startswith("$") else json.dumps(password)
    return (
        "    {\n"
        f"      user: {json.dumps(user.name)}, password: {secret}\n"
        "      permissions: {\n"
        f"        publish: {{{allowed}{denied}}}\n"
        f"        subscribe: {{allow: {json.dumps(list(user.subscribe))}}}\n"
        "      }\n"
        "    }\n"
    )


def _answers(name: str) -> str:
    return f"_INBOX.{subjects.check_id('user of the bus', name)}.>"
