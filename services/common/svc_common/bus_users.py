"""Command that makes users of the bus.

`python -m svc_common.bus_users FOLDER [--pool POOL] [--runner ID=POOL] [--include FILE]`

Writes, readable by this user only:

* `users.conf`, which the configuration of nats-server includes;
* `<user>.env` for each user: the variables that its process needs.

A user whose file exists keeps its password, so an agent can be added at any time: run the command
again and send the server SIGHUP twice (see `docs/security.md`). A `--runner` may use its own
subjects only; agents of a `--pool` share a user, for replicas of one container. `--include` names
the file of agents that the fleet of a deployment writes, relative to `users.conf`, and adds the
user by which the fleet has the server read it; its password is the fleet's.
"""

import argparse
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from svc_common.durable_files import write_private
from svc_common.environment import NNI_NATS_PASSWORD, NNI_NATS_USER
from svc_common.errors import InvalidArgumentError, ServiceError
from svc_common.messaging.permissions import (
    FLEET,
    BusUser,
    compressor_user,
    dispatcher_user,
    fleet_user,
    manager_user,
    nas_user,
    reloader_user,
    runner_user,
    users_block,
)

CONFIGURATION: Final = "users.conf"
_RUNNER_ID: Final = "NNI_RUNNER_ID"
_PASSWORD_BYTES: Final = 24


def main(arguments: Sequence[str]) -> int:
    """Write NATS users and passwords of services, pools, agents to a folder; return exit code."""
    parser = argparse.ArgumentParser(prog="python -m svc_common.bus_users", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the files; created if missing")
    parser.add_argument("--pool", action="append", default=[], help="a user for agents of a pool")
    parser.add_argument(
        "--runner", action="append", default=[], metavar="ID=POOL", help="a user for one agent"
    )
    parser.add_argument("--include", default="", metavar="FILE", help="agents of a fleet")
    chosen = parser.parse_args(arguments)
    try:
        write_users(chosen.folder, chosen.pool, dict(_pairs(chosen.runner)), chosen.include)
    except (ServiceError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def write_users(
    folder: Path, pools: Sequence[str], runners: Mapping[str, str], included: str = ""
) -> None:
    """Write NATS configuration and a file of variables for each user; keep stored passwords.

    Args:
        folder: created if missing.
        pools: names of pools whose agents share a user.
        runners: pool by the id of an agent with a user of its own.
        included: file of agents that a fleet writes, relative to the configuration; empty: none.

    Raises:
        InvalidArgumentError: a name cannot be part of a subject.
        OSError: a file cannot be read or written.
    """
    services = (
        manager_user(),
        dispatcher_user(),
        compressor_user(),
        nas_user(),
        fleet_user(),
    )
    users: list[tuple[BusUser, dict[str, str]]] = [(user, {}) for user in services]
    users += [(runner_user(f"pool-{pool}", pool), {}) for pool in pools]
    users += [(runner_user(name, pool, name), {_RUNNER_ID: name}) for name, pool in runners.items()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    passwords = [_password(folder / f"{user.name}.env") for user, _ in users]
    for (user, more), password in zip(users, passwords, strict=True):
        variables = {NNI_NATS_USER: user.name, NNI_NATS_PASSWORD: password, **more}
        text = "".join(f"{name}={value}\n" for name, value in variables.items())
        write_private(folder / f"{user.name}.env", text)
    logins = [(user, password) for (user, _), password in zip(users, passwords, strict=True)]
    if included:
        fleet = next(password for user, password in logins if user.name == FLEET)
        logins.append((reloader_user(), fleet))
    write_private(folder / CONFIGURATION, users_block(logins, included))


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        runner_id, equals, pool = word.partition("=")
        if not equals:
            raise InvalidArgumentError("--runner", "must be ID=POOL", word)
        yield runner_id, pool


def _password(path: Path) -> str:
    """Return the password in a user's file, else a new random one, which is not stored."""
    start = f"{NNI_NATS_PASSWORD}="
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    kept = next((line.removeprefix(start) for line in lines if line.startswith(start)), "")
    # It begins with a letter: the server would read a password of digits as a number.
    return kept or f"p{secrets.token_urlsafe(_PASSWORD_BYTES)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
