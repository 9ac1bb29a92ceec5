"""Command line of the local deployment: `python -m svc_standalone [run | up | down | status]`."""

import argparse
import json
import os
import sys

from svc_common.errors import ServiceError
from svc_standalone.settings import Settings, read_settings


def main(arguments: list[str] | None = None) -> int:
    """Run a command of the local installation: run, up, down, status; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m svc_standalone", description=__doc__)
    parser.add_argument(
        "command",
        nargs="?",
        default="run",
        choices=("run", "up", "down", "status"),
        help="run: run the supervisor in the foreground; up: start it in the background",
    )
    parser.add_argument(
        "--detach", action="store_true", help="run: continue as a child of init and return at once"
    )
    parser.add_argument("--port", type=int, default=0, help="port of page and REST; 0: a free one")
    chosen = parser.parse_args(arguments)
    if chosen.detach and os.fork() > 0:
        # The caller can reap this process now. If the supervisor were its child, it would remain a
        # zombie after `down`, and look as if it were still running.
        os._exit(0)
    try:
        return _COMMANDS[chosen.command](read_settings(), chosen.port)
    except ServiceError as error:
        print(error.message, file=sys.stderr)  # noqa: T201 - a command line
        return 1


def _run(settings: Settings, port: int) -> int:
    from dataclasses import replace

    from svc_standalone.fork_server import SHARED_MODULES, start_fork_server

    # Before all else: it imports while this process does, and forks what has nothing yet.
    forks = start_fork_server(SHARED_MODULES)
    from svc_standalone.app import run

    return run(replace(settings, http_port=port) if port else settings, forks)


def _up(settings: Settings, port: int) -> int:
    from svc_standalone.launcher import up

    endpoint = up(settings.home, port)
    print(json.dumps({"http": endpoint.http, "grpc": endpoint.grpc}))  # noqa: T201 - a command line
    return 0


def _down(settings: Settings, _port: int) -> int:
    from svc_standalone.launcher import down

    was_up = down(settings.home)
    print("down" if was_up else "was not up")  # noqa: T201 - a command line
    return 0


def _status(settings: Settings, _port: int) -> int:
    from svc_standalone.endpoint import read_endpoint

    endpoint = read_endpoint(settings.home)
    fields = {"up": False} if endpoint is None else {"up": True, **endpoint.as_json()}
    fields.pop("token", None)
    print(json.dumps(fields))  # noqa: T201 - a command line
    return 0


_COMMANDS = {"run": _run, "up": _up, "down": _down, "status": _status}

if __name__ == "__main__":
    sys.exit(main())
