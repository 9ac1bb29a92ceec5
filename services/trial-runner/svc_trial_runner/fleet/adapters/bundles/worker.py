"""Program that runs on a worker machine: commands `probe`, `unpack`, `start` and others.

`WorkerCommands` makes its command lines, and sends the program itself on stdin before what a
command reads: nothing has to be there but Python. Standard library only; it works on Linux.

    probe                           facts about the machine; creates the folder of NNI
    unpack HASH < bundle            unpack a bundle unless it is there
    settings NAME < settings.json   write the settings of an agent
    start NAME HASH < settings.json write them and start the agent, detached
    run NAME HASH                   run it here until it ends, for the scripts of batch systems
    run --tether BYTES NAME HASH    detach, run it until stdin ends, then remove its folder; the
                                    first bytes of stdin are its settings
    status [PREFIX]                 states of agents
    stop NAME...                    end agents and their trials
    remove NAME...                  end them and remove their folders
    clean PREFIX [--bundles]        remove all agents of a pool, and bundles without an agent
    log NAME                        end of an agent's log

Each prints one line `NNI-WORKER {...}`, since a profile of the shell may print as well; `run` does
not. A failed one prints `{"error": {"code", "message", "remedy", "permanent"}}` and exits with 1.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from svc_trial_runner.fleet.adapters.bundles import worker_agents
from svc_trial_runner.fleet.adapters.bundles.worker_bundles import unpack
from svc_trial_runner.fleet.adapters.bundles.worker_folders import (
    WorkerError,
    WorkerFolders,
    file_error,
)
from svc_trial_runner.fleet.adapters.bundles.worker_machine import probe
from svc_trial_runner.fleet.adapters.bundles.worker_supervisor import (
    Tether,
    detach,
    supervise,
)

MARKER: Final = "NNI-WORKER "
"""Begins the line of a report."""
_GRACE_S: Final = 10.0
_TAIL_BYTES: Final = 16 * 1024


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the worker program's arguments; print usage and exit if they are wrong."""
    parser = argparse.ArgumentParser(prog="worker")
    parser.add_argument("--folder", default="~/.nni")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("probe")
    commands.add_parser("unpack").add_argument("digest")
    for command in ("settings", "start", "run"):
        one = commands.add_parser(command)
        if command == "run":
            one.add_argument("--detach", action="store_true")
            one.add_argument("--tether", type=int, metavar="BYTES")
        one.add_argument("name")
        one.add_argument("digest")
    commands.add_parser("status").add_argument("prefix", nargs="?", default="")
    for command in ("stop", "remove"):
        one = commands.add_parser(command)
        one.add_argument("names", nargs="+")
        one.add_argument("--grace", type=float, default=_GRACE_S)
    one = commands.add_parser("clean")
    one.add_argument("prefix")
    one.add_argument("--bundles", action="store_true")
    one.add_argument("--grace", type=float, default=_GRACE_S)
    one = commands.add_parser("log")
    one.add_argument("name")
    one.add_argument("--bytes", type=int, default=_TAIL_BYTES)
    return parser.parse_args(arguments)


def perform(options: argparse.Namespace, source: BinaryIO) -> dict[str, Any]:
    """Perform a command other than `run`; return its report, raise WorkerError if it fails.

    Raises:
        WorkerError: it failed.
    """
    folders = WorkerFolders(options.folder)
    match options.command:
        case "probe":
            return probe(folders)
        case "unpack":
            return {"unpacked": unpack(folders, options.digest, source)}
        case "settings":
            worker_agents.write_settings(folders, options.name, options.digest, source.read())
            return {"folder": str(folders.agent(options.name))}
        case "start":
            return worker_agents.start(folders, options.name, options.digest, source.read())
        case "status":
            return {"agents": worker_agents.states(folders, options.prefix)}
        case "log":
            return {"log": worker_agents.read_tail(folders, options.name, options.bytes)}
        case "clean":
            return {
                "agents": worker_agents.clean(
                    folders, options.prefix, options.grace, bundles=options.bundles
                )
            }
        case "stop":
            return {"agents": worker_agents.stop(folders, options.names, options.grace)}
        case _:
            return {"agents": worker_agents.remove(folders, options.names, options.grace)}


def main(arguments: Sequence[str], source: BinaryIO) -> int:
    """Perform a command and print its report; return the exit code.

    Args:
        arguments: of the command line, without the program.
        source: stdin, behind the program.
    """
    options = parse(arguments)
    try:
        if options.command == "run":
            return _run(options, source)
        report = perform(options, source)
    except WorkerError as error:
        return _fail(error, options.command)
    except OSError as error:
        return _fail(file_error(error, Path(options.folder)), options.command)
    sys.stdout.write(f"{MARKER}{json.dumps(report)}\n")
    return 0


def _run(options: argparse.Namespace, source: BinaryIO) -> int:
    if options.tether is not None:
        return _run_tethered(options, source)
    settings = None
    if options.detach:
        settings = source.read()
        detach()
    return supervise(WorkerFolders(options.folder), options.name, options.digest, settings)


def _run_tethered(options: argparse.Namespace, source: BinaryIO) -> int:
    """Run an agent until it or stdin ends; in the second case remove its folder."""
    settings = source.read(options.tether)
    detach()
    folders = WorkerFolders(options.folder)
    tether = Tether(source, folders.agent(options.name))
    tether.start()
    code = supervise(folders, options.name, options.digest, settings)
    if tether.is_cut:
        worker_agents.remove(folders, [options.name], 0.0)
    return code


def _fail(error: WorkerError, command: str) -> int:
    if command == "run":
        sys.stderr.write(f"ERROR: {error.message}\n")
        return 1
    fields = {
        "code": error.code,
        "message": error.message,
        "remedy": error.remedy,
        "permanent": error.permanent,
    }
    sys.stdout.write(f"{MARKER}{json.dumps({'error': fields})}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdin.buffer))
