"""Check of a class that the user registers, in a child process with a deadline.

Its module is code of the user that may print, fork, hang, or end the interpreter at import.
"""

import importlib
import json
import math
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Final

from nni.hpo.registry.declaration import BASES
from nni.hpo.registry.validation import ClassArgsValidator

IMPORT_TIMEOUT_S: Final = 120.0
"""Time for the import of a class; that of a large library takes seconds."""
_CHILD: Final = (
    "import json, sys\n"
    "sys.path[:] = json.loads(sys.argv[1])\n"
    "from nni.hpo.registry import class_check\n"
    "class_check.answer(int(sys.argv[2]), *sys.argv[3:])\n"
)
_BASES: Final[dict[str, type]] = {
    **{str(kind): base for kind, base in BASES.items()},
    "validator": ClassArgsValidator,
}
_ANSWER_LIMIT_BYTES: Final = 16_384
"""Less than a pipe holds, so that the child never waits for a reader."""
_TEXT_LIMIT: Final = 500


def check_class(class_name: str, kind: str, key: str, timeout_s: float = IMPORT_TIMEOUT_S) -> None:
    """Import a class in a child process; raise ValueError unless it is a subclass of its kind's.

    Args:
        class_name: `module.class`.
        kind: `tuner`, `assessor`, `advisor` or `validator`.
        key: key of the meta file, for the messages.
        timeout_s: time for the import, in seconds.

    Raises:
        ValueError: the module cannot be imported, does not end its import in time, or ends the
            interpreter; or the class is missing or none of its kind.
    """
    reader, writer = os.pipe()
    try:
        with os.fdopen(writer, "wb"):
            path = json.dumps(sys.path)
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _CHILD, path, str(writer), class_name, kind, key],
                pass_fds=[writer],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        fault = _fault_of(process, reader, f"{key}: the import of {class_name!r}", timeout_s)
    finally:
        os.close(reader)
    if fault:
        raise ValueError(fault)


def _fault_of(
    process: "subprocess.Popen[bytes]", reader: int, subject: str, timeout_s: float
) -> str:
    """Wait for a child's answer and end it with what it has forked; return the fault or ''."""
    try:
        status = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return f"{subject} must end within {timeout_s:g} s; move long work into the constructor"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    os.set_blocking(reader, False)
    with suppress(BlockingIOError, ValueError, KeyError):
        line = os.read(reader, _ANSWER_LIMIT_BYTES).splitlines()[:1]
        return str(json.loads(b"".join(line))["fault"])
    return f"{subject} must not end the interpreter; it ended with status {status}"


def answer(writer: int, class_name: str, kind: str, key: str) -> None:
    """Write the fault of a class to a pipe and end this process, whatever the class has started.

    Args:
        writer: descriptor of the pipe.
        class_name: `module.class`.
        kind: `tuner`, `assessor`, `advisor` or `validator`.
        key: key of the meta file.
    """
    signal.alarm(math.ceil(IMPORT_TIMEOUT_S))  # where the parent is killed and ends nothing
    fault = _fault(class_name, _BASES[kind], key)
    os.write(writer, json.dumps({"fault": fault}).encode() + b"\n")
    os._exit(0)


def _fault(class_name: str, base: type, key: str) -> str:
    """Return what is wrong with a class; '' if nothing is."""
    name, _, attribute = class_name.rpartition(".")
    try:
        found = getattr(importlib.import_module(name), attribute, None)
        if found is None:
            return f"{key}: module {name!r} has no {attribute!r}"
        if isinstance(found, type) and issubclass(found, base):
            return ""
    except ImportError as error:
        return (
            f"{key}: {name!r} cannot be imported ({error!s:.{_TEXT_LIMIT}}); install its package "
            f"into {sys.prefix} first"
        )
    except BaseException as error:  # noqa: BLE001 - rim: code of the user may raise anything
        cause = f"{type(error).__name__}: {error!s:.{_TEXT_LIMIT}}"
        return f"{key}: {name!r} must be importable without an error; it raised {cause}"
    return f"{key}: {class_name} must be a subclass of {base.__qualname__}"
