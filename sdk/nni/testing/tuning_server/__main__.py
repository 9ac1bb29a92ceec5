"""Run the suite against a server that is up: `python -m nni.testing.tuning_server HOST:PORT`."""

import argparse
import inspect
import json
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import grpc

from nni.hpo.json_value import JsonValue
from nni.testing.tuning_server.client import TuningClient
from nni.testing.tuning_server.suite import TuningServerConformance

CONNECT_TIMEOUT_S: Final = 10.0


def main(
    arguments: Sequence[str] | None = None, *, connect_timeout_s: float = CONNECT_TIMEOUT_S
) -> int:
    """Run every test; return the exit code (0: all passed, 1: one failed, 2: no server).

    Args:
        arguments: of the command line; None: those of this process.
        connect_timeout_s: how long to wait for the server, in seconds.
    """
    parser = argparse.ArgumentParser(prog="python -m nni.testing.tuning_server")
    parser.add_argument("address", help="host:port of the server")
    parser.add_argument("--class-args", type=json.loads, default={}, metavar="JSON")
    parser.add_argument("--search-space", type=json.loads, metavar="JSON", help="one it supports")
    options = parser.parse_args(arguments)
    with TuningClient(options.address) as client:
        try:
            client.wait_ready(connect_timeout_s)
        except grpc.FutureTimeoutError:
            sys.stderr.write(f"no server can be reached at {options.address}\n")
            return 2
    suite = _suite(options.address, options.class_args, options.search_space)
    failed = [name for name in _names() if not _passes(suite, name)]
    passed = len(_names()) - len(failed)
    sys.stdout.write(f"{passed} passed, {len(failed)} failed\n")
    return 1 if failed else 0


def _suite(address: str, arguments: JsonValue, search_space: JsonValue) -> TuningServerConformance:
    class Served(TuningServerConformance):
        class_args = arguments

        def address(self) -> str:
            return address

    if search_space is not None:
        Served.search_space = search_space
    return Served()


def _names() -> list[str]:
    """Return the tests in the order of the source."""
    return [name for name in vars(TuningServerConformance) if name.startswith("test_")]


def _passes(suite: TuningServerConformance, name: str) -> bool:
    test = getattr(suite, name)
    sentence = (inspect.getdoc(test) or name).splitlines()[0]
    try:
        test()
    except Exception:  # noqa: BLE001 - rim of a command line: shown with its traceback
        sys.stdout.write(f"FAILED  {name}: {sentence}\n{traceback.format_exc()}")
        return False
    sys.stdout.write(f"ok      {name}\n")
    return True


if __name__ == "__main__":
    sys.exit(main())
