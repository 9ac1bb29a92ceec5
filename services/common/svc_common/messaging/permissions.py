"""Accounts and permissions of each kind of process at the bus: users of NATS and their subjects.

The manager, the streams and all subjects of NNI belong to one account. Each other user has an
account of its own, which imports what the user needs and no more. A request names the subject of
its answer, and the server sends the answer with rights of its own: within one account an agent
could make it publish an order or an API call. An answer to another account goes to a subject of
that account only, where there is nothing but the user itself.

For the same reason only the manager makes consumers: a consumer delivers to any subject of the
streams' account.

The server passes on no message twice from account to account. What agents and fleet send to each
other therefore does not go through the manager's account: agents import it from the fleet's.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nni_wire.pools import experiment_of_pool
from svc_common import subjects
from svc_common.errors import InvalidArgumentError

MANAGER: Final = "manager"
DISPATCHER: Final = "dispatcher"
FLEET: Final = "fleet"
ANY_RUNNER: Final = "*"
"""Stands for the ids of all agents of a pool that share one user, as replicas of a container do.
That user has no access to other pools or to subjects of services, but to the orders of each of
these agents."""


ACCOUNT: Final = "NNI"
"""Account of the manager and of the streams; the server keeps streams in a folder of this name."""
RELOADER: Final = "reloader"
"""User by whom the fleet of a deployment has the servers read their users again."""
SYSTEM_ACCOUNT: Final = "$SYS"
"""Account to which each server of the bus answers about itself."""
FIND_SERVERS: Final = "$SYS.REQ.SERVER.PING"
ALL_RELOADS: Final = "$SYS.REQ.SERVER.*.RELOAD"
_PULL: Final = f"CONSUMER.MSG.NEXT.{subjects.STREAM_TASKS}"
_PULL_PAUSE_LIMIT: Final = "70s"
"""How long the server remembers who pulled: longer than a pull request without a task stands."""
_READ_BATCH: Final = f"DIRECT.GET.{subjects.STREAM_EXPERIMENTS}"
_READ_LAST: Final = f"STREAM.MSG.GET.{subjects.STREAM_EXPERIMENTS}"
_LIST: Final = f"STREAM.INFO.{subjects.STREAM_EXPERIMENTS}"
_READ_POOLS: Final = f"DIRECT.GET.{subjects.STREAM_POOLS}"
_COPIES_FOR_FLEET: Final = (
    subjects.pool_copies(subjects.ALL_POOL_NEEDS),
    subjects.pool_copies(subjects.ALL_POOL_DEFINITIONS),
    subjects.pool_copies(subjects.ALL_POOL_CHECKS),
    subjects.pool_copies(subjects.ALL_POOL_INVITATIONS),
)
_EXPORTS: Final = (
    *(
        f"{{service: {json.dumps(subject)}}}"
        for subject in (
            subjects.ALL_INBOXES,
            subjects.ALL_PRESENCES,
            subjects.ALL_LOGS,
            subjects.ALL_POOL_STATES,
            subjects.ALL_POOL_PROBLEMS,
            subjects.ALL_POOL_FRONTS,
            f"$JS.ACK.{subjects.STREAM_TASKS}.>",
            f"{subjects.JETSTREAM_API}.{_READ_LAST}",
            f"{subjects.JETSTREAM_API}.{_LIST}",
        )
    ),
    *(
        f"{{service: {json.dumps(f'{subjects.JETSTREAM_API}.{operation}')}, "
        f'response_type: stream, threshold: "{_PULL_PAUSE_LIMIT}"}}'
        for operation in (f"{_PULL}.*", _READ_BATCH, _READ_POOLS)
    ),
    *(
        f"{{stream: {json.dumps(subject)}}}"
        for subject in (subjects.ALL_CONTROLS, subjects.ALL_COPIES, *_COPIES_FOR_FLEET)
    ),
)
"""Exports of `ACCOUNT`; an answer of several messages is a `response_type: stream`."""


@dataclass(frozen=True, slots=True)
class BusUser:
    """NATS user: its account, and the subjects it may publish and subscribe to."""

    name: str
    publish: tuple[str, ...]
    """Imported from `ACCOUNT` as services, answers apart; in `ACCOUNT` itself the user's rights."""
    subscribe: tuple[str, ...]
    """Imported from `ACCOUNT` as streams, answers apart."""
    never_publish: tuple[str, ...] = ()
    """Exceptions from `publish`."""
    exported: tuple[str, ...] = ()
    """Subjects of `publish` and `subscribe` that belong to its own account, for agents."""
    to_fleet: tuple[str, ...] = ()
    """Subjects of `publish` that reach the fleet's account as well."""
    from_fleet: tuple[str, ...] = ()
    """Subjects of `subscribe` that the fleet's account publishes to as well."""

    @property
    def account(self) -> str:
        """Account that the user belongs to."""
        if ALL_RELOADS in self.publish:
            return SYSTEM_ACCOUNT
        return ACCOUNT if "$JS.>" in self.publish else _account_of(self.name)


def manager_user(name: str = MANAGER) -> BusUser:
    """Return the user of managers: all subjects of NNI, streams and consumers included."""
    answers = _answers(name)
    return BusUser(name, ("nni.>", "$JS.>", answers), ("nni.>", answers))


def dispatcher_user(name: str = DISPATCHER) -> BusUser:
    """Return the NATS user of dispatchers: reads all logs, publishes to all INBOXes."""
    return _answering_user(name, DISPATCHER)


def compressor_user(name: str = subjects.COMPRESSOR) -> BusUser:
    """Return the NATS user of compressors: reads all logs, publishes to all INBOXes."""
    return _answering_user(name, subjects.COMPRESSOR)


def nas_user(name: str = subjects.NAS) -> BusUser:
    """Return the NATS user of NAS services: reads all logs, publishes to all INBOXes."""
    return _answering_user(name, subjects.NAS)


def fleet_user(name: str = FLEET) -> BusUser:
    """Return the fleet's NATS user: reads pools and presence messages, publishes states, orders.

    It orders agents to take no more trials; the subjects of orders do not tell one kind from
    another. The stream of pools is read whole; it has no secrets.
    """
    answers = _answers(name)
    return BusUser(
        name,
        (
            subjects.ALL_POOL_STATES,
            subjects.ALL_POOL_PROBLEMS,
            subjects.ALL_POOL_FRONTS,
            subjects.ALL_CONTROLS,
            f"{subjects.IMPORTED_API}.{_READ_POOLS}",
            answers,
        ),
        (*_COPIES_FOR_FLEET, subjects.ALL_PRESENCES, answers),
        exported=(subjects.ALL_CONTROLS, subjects.ALL_PRESENCES),
    )


def reloader_user(name: str = RELOADER) -> BusUser:
    """Return the NATS user that finds the servers and has them read their configuration again."""
    answers = _answers(name)
    return BusUser(name, (FIND_SERVERS, ALL_RELOADS, answers), (answers,))


def silent_user(name: str) -> BusUser:
    """Return a NATS user that may connect and use its own reply inbox, and nothing else."""
    answers = _answers(name)
    return BusUser(name, (answers,), (answers,))


def _answering_user(name: str, source: str) -> BusUser:
    """Return the user of a service that answers requests for parameters under a source name."""
    answers = _answers(name)
    operations = (_LIST, _READ_LAST, _READ_BATCH)
    return BusUser(
        name,
        (
            subjects.inboxes_from(source),
            *(f"{subjects.IMPORTED_API}.{operation}" for operation in operations),
            answers,
        ),
        (subjects.ALL_COPIES, answers),
    )


def runner_user(name: str, pool: str, runner_id: str = ANY_RUNNER) -> BusUser:
    """Return the NATS user of an agent or a pool's agents, with the subjects they may use.

    An agent of an experiment's own pool sends reports and output of that experiment only.

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
    logs = subjects.ALL_LOGS
    experiment_id = experiment_of_pool(pool)
    if experiment_id is not None and runner_id != ANY_RUNNER:
        inboxes = subjects.inbox_subject(experiment_id, runner_id)
        logs = subjects.log_filter(experiment_id)
    consumers = (subjects.pool_consumer(pool), subjects.retry_consumer(pool))
    answers = _answers(name)
    return BusUser(
        name,
        (
            inboxes,
            presence,
            logs,
            *(f"{subjects.IMPORTED_API}.{_PULL}.{consumer}" for consumer in consumers),
            *(f"$JS.ACK.{subjects.STREAM_TASKS}.{consumer}.>" for consumer in consumers),
            answers,
        ),
        (control, answers),
        tuple(subjects.inboxes_from(source) for source in sorted(subjects.ALGORITHM_SOURCES)),
        to_fleet=(presence,),
        from_fleet=(control,),
    )


def users_block(users: Iterable[tuple[BusUser, str]], included: str = "") -> str:
    """Return the `accounts` block of a NATS configuration for these users and passwords.

    Args:
        users: each with its password; one that starts with `$` is the name of a variable of the
            server's environment. Users beside the manager's need it among them.
        included: file with further accounts, relative to that of the block; empty: none.
    """
    users = tuple(users)
    has_fleet = any(user.account == _account_of(FLEET) for user, _ in users)
    more = f"  include {included}\n" if included else ""
    return f"accounts {{\n{_account_blocks(users, has_fleet)}{more}}}\n"


def agent_accounts(agents: Iterable[tuple[BusUser, str]]) -> str:
    """Return accounts of agents with their passwords, for the file that `users_block` includes."""
    return _account_blocks(agents, has_fleet=True)


def _account_blocks(users: Iterable[tuple[BusUser, str]], has_fleet: bool) -> str:  # noqa: FBT001 - two calls
    accounts: dict[str, list[str]] = {}
    members: dict[str, list[str]] = {}
    for user, password in users:
        accounts.setdefault(user.account, _account_lines(user, has_fleet))
        members.setdefault(user.account, []).append(_user_lines(user, password))
    return "".join(
        f"  {json.dumps(name)} {{\n{''.join(lines)}"
        f"    users: [\n{''.join(members[name])}    ]\n  }}\n"
        for name, lines in accounts.items()
    )


def _account_lines(user: BusUser, has_fleet: bool) -> list[str]:  # noqa: FBT001 - one call
    """Return the lines of a user's account: its exports, and its imports from other accounts."""
    if user.account == SYSTEM_ACCOUNT:
        return []
    if user.account == ACCOUNT:
        return ["    jetstream: enabled\n", *_block("exports", _EXPORTS)]
    own = {_answers(user.name), *user.exported}
    imports = [_service(subject) for subject in user.publish if subject not in own]
    imports += [_stream(subject) for subject in user.subscribe if subject not in own]
    if has_fleet:
        fleet = _account_of(FLEET)
        imports += [f"{{service: {_remote(subject, fleet)}}}" for subject in user.to_fleet]
        imports += [_stream(subject, fleet) for subject in user.from_fleet]
    exports = [f"{{stream: {json.dumps(one)}}}" for one in user.publish if one in user.exported]
    exports += [f"{{service: {json.dumps(one)}}}" for one in user.subscribe if one in user.exported]
    return [*(_block("exports", exports) if exports else ()), *_block("imports", imports)]


def _block(name: str, lines: Iterable[str]) -> list[str]:
    return [f"    {name}: [\n", *(f"      {line}\n" for line in lines), "    ]\n"]


def _service(subject: str) -> str:
    """Return the import line of a subject as a service, renamed if it is of JetStream's API."""
    prefix = f"{subjects.IMPORTED_API}."
    if not subject.startswith(prefix):
        return f"{{service: {_remote(subject)}}}"
    original = f"{subjects.JETSTREAM_API}.{subject.removeprefix(prefix)}"
    return f"{{service: {_remote(original)}, to: {json.dumps(subject)}}}"


def _stream(subject: str, account: str = ACCOUNT) -> str:
    return f"{{stream: {_remote(subject, account)}}}"


def _remote(subject: str, account: str = ACCOUNT) -> str:
    return f"{{account: {json.dumps(account)}, subject: {json.dumps(subject)}}}"


def _account_of(name: str) -> str:
    return f"user-{name}"


def _user_lines(user: BusUser, password: str) -> str:
    allowed = f"allow: {json.dumps(list(user.publish))}"
    denied = f", deny: {json.dumps(list(user.never_publish))}" if user.never_publish else ""
    secret = password if password.startswith("$") else json.dumps(password)
    return (
        "      {\n"
        f"        user: {json.dumps(user.name)}, password: {secret}\n"
        "        permissions: {\n"
        f"          publish: {{{allowed}{denied}}}\n"
        f"          subscribe: {{allow: {json.dumps(list(user.subscribe))}}}\n"
        "        }\n"
        "      }\n"
    )


def _answers(name: str) -> str:
    return f"_INBOX.{subjects.check_id('user of the bus', name)}.>"
