"""Entry point of containers: hands secrets to a service and gives up the rights to read them.

`python -P -m svc_common.entry_point [--user UID[:GID]] [--code-user UID[:GID]] COMMAND...`

Secrets are files that only root may read: those of `NNI_SECRETS_FILE` (lines `NAME=value`, or
folders with a file for each variable; several separated by colons) and the key of
`NNI_TLS_KEY_FILE`. This program reads them, puts them into memory that the command inherits as
descriptors, becomes the user of the service, and executes the command. User code that the service
starts has neither the descriptors nor the right to read files or memory of the service;
environments and arguments hold no secret from the start.

With `--code-user` the service runs user code as that user: it keeps the capabilities SETUID, SETGID
and KILL, and belongs to that user's group.

As another user than root it passes on what it can read, and stays that user, also for user code.
"""

import argparse
import contextlib
import json
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from svc_common import environment
from svc_common.code_user import parse_ids
from svc_common.errors import InvalidArgumentError, ServiceError
from svc_common.inspection import become_with_capabilities, forbid_inspection

_LIMIT_BYTES = 1_000_000
_SHARED_FOLDERS = ("/tmp", "/dev/shm")  # noqa: S108 - they are only protected here


def memory_file(content: Mapping[str, str] | bytes) -> int:
    """Write bytes, or a mapping as JSON, to an anonymous file in memory; return its descriptor.

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
    """Load secrets, become the user, replace this process by the command; return 1 on errors."""
    parser = argparse.ArgumentParser(prog="python -m svc_common.entry_point", description=__doc__)
    parser.add_argument("--user", default="", metavar="UID[:GID]", help="user of the service")
    parser.add_argument("--code-user", default="", metavar="UID[:GID]", help="user of user code")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="program and its arguments")
    chosen = parser.parse_args(arguments)
    try:
        if not chosen.command:
            raise InvalidArgumentError("command", "must name a program")
        _run(chosen.command, chosen.user, chosen.code_user)
    except (ServiceError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _run(command: Sequence[str], user: str, code_user: str) -> NoReturn:
    forbid_inspection()
    environment.load_secrets()
    variables = environment.current()
    variables.pop(environment.NNI_CODE_USER, None)
    key_file = environment.path(environment.NNI_TLS_KEY_FILE)
    key = None if key_file is None else _read(key_file)
    if user and os.geteuid() == 0:
        _become(*parse_ids("--user", user), code_user)
        if code_user:
            variables[environment.NNI_CODE_USER] = code_user
            # A change of users needs fork, whose handlers of grpc would end the child.
            variables[environment.GRPC_ENABLE_FORK_SUPPORT] = "0"
    # From here on as the user of the service, who opens its key again and again.
    descriptors = []
    if key is not None:
        descriptors.append(memory_file(key))
        variables[environment.NNI_TLS_KEY_FILE] = f"/proc/self/fd/{descriptors[0]}"
    secrets = environment.secrets()
    if secrets:
        descriptors.append(memory_file(secrets))
        variables[environment.NNI_SECRETS_FD] = str(descriptors[-1])
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)  # noqa: FBT003 - its only way
        os.fchmod(descriptor, 0o400)
    os.execvpe(command[0], list(command), variables)  # noqa: S606 - its purpose


def _become(uid: int, gid: int, code_user: str) -> None:
    if not code_user:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
        return
    _, code_gid = parse_ids("--code-user", code_user)
    _protect_folders()
    # Groups of the container: of GPUs and data sets. That of the service is its first.
    further = [number for number in os.getgroups() if number not in {0, gid, code_gid}]
    become_with_capabilities(uid, gid, [code_gid, *further])


def _protect_folders() -> None:
    """Set the sticky bit on /tmp and /dev/shm; let others enter, not write, NNI's folders.

    Folders that root does not own stay as they are, and errors are ignored. Kubernetes creates
    volumes of a pod that all users may write to, without the sticky bit.
    """
    for name in _SHARED_FOLDERS:
        _add_mode(Path(name), stat.S_ISVTX, 0)
    # User code has folders of its own inside.
    for folder in (environment.home(), Path("~/nni-experiments").expanduser()):
        _add_mode(folder, stat.S_IXOTH, stat.S_IWOTH)


def _add_mode(folder: Path, added: int, taken: int) -> None:
    with contextlib.suppress(OSError):
        found = folder.stat()
        mode = stat.S_IMODE(found.st_mode)
        wanted = (mode | added) & ~taken
        if found.st_uid == 0 and mode != wanted:
            folder.chmod(wanted)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
