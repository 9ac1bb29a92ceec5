"""Entry point of an agent that a person starts: `nnictl runner join https://HOST:PORT --pool P`."""

import argparse
import getpass
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from svc_common.errors import InvalidArgumentError, ServiceError
from svc_common.inspection import forbid_inspection
from svc_common.lifecycle import run_process
from svc_trial_runner.agent_settings import AgentSettings, ConnectionKind, ConnectionSettings
from svc_trial_runner.app import build
from svc_trial_runner.enrolment import (
    JOINED,
    EnrolmentRequest,
    EnrolmentWord,
)
from svc_trial_runner.joining.front_client import enrol, parse_front_address, read_authority
from svc_trial_runner.joining.machine_folder import DEFAULT, MachineFolder, folder_name
from svc_trial_runner.settings import settings_of_fleet

_WORD_LIMIT = 1_000
_STANDARD_INPUT = "-"


def main() -> int:
    """Enrol this machine, then run the agent as this process; return the exit code."""
    forbid_inspection()  # before the word is in memory
    try:
        options = _options(sys.argv[1:])
        fleet = join_pool(options, EnrolmentWord.parse(_read_word(options.word_file)))
        settings = settings_of_fleet(fleet)
    except InvalidArgumentError as error:
        sys.stderr.write(f"ERROR: {error.message}\n")
        return 2
    except ServiceError as error:
        sys.stderr.write(f"ERROR: {error.message}\n")
        return 1
    sys.stderr.write(
        f"This machine is agent {fleet.name} of pool {fleet.pool}. Ctrl-C: it takes no more "
        "trials, and ends after its last one; a second Ctrl-C ends it at once.\n"
    )
    return run_process("trial-runner", lambda service: build(service, settings), settings.grace_s)


def join_pool(options: argparse.Namespace, word: EnrolmentWord) -> AgentSettings:
    """Enrol this machine; return the settings of its agent.

    Raises:
        InvalidArgumentError: an option is wrong.
        ServiceError: the front cannot be reached or refuses, or the folder cannot be used.
    """
    host, port = parse_front_address(options.address)
    indices = _gpu_indices(options.gpu_indices)  # before a use of the invitation
    authority = read_authority(host, port, word.authority_sha256)
    base = Path(options.folder or DEFAULT).expanduser()
    host_name = platform.node() or "localhost"
    folder = MachineFolder(base / folder_name(word.authority_sha256, options.pool, host_name))
    answer = enrol(
        host,
        port,
        authority,
        EnrolmentRequest(
            secret=word.secret,
            pool=options.pool,
            machine_id=folder.machine_id(),
            host_name=host_name,
            version=_version(),
            slots=options.slots,
        ),
    )
    if answer.warning:
        sys.stderr.write(f"WARNING: {answer.warning}\n")
    shown = f"[{host}]" if ":" in host else host
    address = f"{shown}:{port}"
    return AgentSettings(
        name=answer.name,
        pool=options.pool,
        platform=JOINED,
        home=str(folder.agent(answer.name)),
        connection=ConnectionSettings(
            ConnectionKind.TLS, bus=f"tls://{address}", manager=address, authority=authority
        ),
        bus_user=answer.bus_user,
        bus_password=answer.bus_password,
        manager_token=answer.manager_token,
        slots=options.slots,
        version=_version(),
        gpu_indices=indices,
        removes_home=True,
    )


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="nnictl runner join", description=__doc__)
    parser.add_argument("address", help="https://HOST:PORT of the TLS front")
    parser.add_argument("--pool", required=True)
    parser.add_argument("--word-file", default=_STANDARD_INPUT, help="- is the standard input")
    parser.add_argument("--slots", type=int, default=1, help="trials at once")
    parser.add_argument("--gpu-indices", default="", help="GPUs for trials, such as 0,2")
    parser.add_argument("--folder", default="", help=f"folder of the agent ({DEFAULT})")
    return parser.parse_args(arguments)


def _read_word(name: str) -> str:
    """Return the first line, unstripped, of a file, stdin or (hidden) terminal; empty at the end.

    Raises:
        InvalidArgumentError: the file cannot be read.
    """
    try:
        if name == _STANDARD_INPUT and sys.stdin.isatty():
            return getpass.getpass("Word: ")
        if name == _STANDARD_INPUT:
            return sys.stdin.readline(_WORD_LIMIT)
        with Path(name).open(encoding="ascii") as file:
            return file.readline(_WORD_LIMIT)
    except EOFError:
        return ""  # Ctrl-D: no word
    except (OSError, ValueError) as error:
        raise InvalidArgumentError("--word-file", f"must be a readable file ({error})") from error


def _gpu_indices(text: str) -> tuple[int, ...] | None:
    if not text:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InvalidArgumentError("--gpu-indices", "must be numbers separated by commas", text)
    return tuple(map(int, parts))


def _version() -> str:
    try:
        return version("nni-svc-trial-runner")
    except PackageNotFoundError:
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())
