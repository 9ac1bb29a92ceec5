"""Entry point of containers: hands secrets to a service and gives up the rights to read them.

`python -P -m svc_common.entry_point [--user UID[:GID]] COMMAND...`

Secrets are files that only root may read: those of `NNI_SECRETS_FILE` (lines `NAME=value`, several
files separated by colons) and the key of `NNI_TLS_KEY_FILE`. This program reads them, puts them
into memory that the command inherits as descriptors, becomes the user of the service, and executes
the command. User code that the service starts has neither the descriptors nor the right to read
files or memory of the service; environments and arguments hold no secret from the start.

As another user than root it passes on what it can read, and stays that user.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from svc_common import environment
from svc_common.errors import InvalidArgumentError, ServiceError
from svc_common.inspection import forbid_inspection

_LIMIT_BYTES = 1_000_000


def memory_file(content: Mapping[str, str] | bytes) -> int:
    """Write bytes, or variables as JSON, to a file in memory; return its descriptor.

    Args:
        content: bytes, or variables, which are written as a JSON object.
    """
    data = content if isinstance(content, bytes) else json.dumps(dict(content)).encode()
    descriptor = os.memfd_create("nni")
    with open(os.dup(descriptor), "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def main(arguments: Sequence[str]) -> int:
    """Load secrets, change to the given user and execute the command in place of this process."""
    parser = argparse.ArgumentParser(prog="python -m svc_common.entry_point", description=__doc__)
    parser.add_argument("--user", default="", metavar="UID[:GID]", help="user of the service")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="program and its arguments")
    chosen = parser.parse_args(arguments)
    try:
        if not chosen.command:
            raise InvalidArgumentError("command", "must name a program")
        _run(chosen.command, chosen.user)
    except (ServiceError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _run(command: Sequence[str], user: str) -> NoReturn:
    forbid_inspection()
    environment.load_secrets()
    variables = environment.current()
    descriptors = []
    key = environment.path(environment.NNI_TLS_KEY_FILE)
    if key is not None:
        descriptors.append(memory_file(_read(key)))
        variables[environment.NNI_TLS_KEY_FILE] = f"/proc/self/fd/{descriptors[0]}"
    secrets = environment.secrets()
    if secrets:
        descriptors.append(memory_file(secrets))
        variables[environment.NNI_SECRETS_FD] = str(descriptors[-1])
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)  # noqa: FBT003 - its only way
        if user and os.geteuid() == 0:
            # The service opens the key again and again, as its own user.
            os.fchown(descriptor, *_ids(user))
        os.fchmod(descriptor, 0o400)
    if user and os.geteuid() == 0:
        uid, gid = _ids(user)
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.execvpe(command[0], list(command), variables)  # noqa: S606 - its purpose


def _ids(user: str) -> tuple[int, int]:
    uid, _, gid = user.partition(":")
    if not uid.isdecimal() or not (gid or uid).isdecimal():
        raise InvalidArgumentError("--user", "must be UID or UID:GID in numbers", user)
    return int(uid), int(gid or uid)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
