"""Announcement of a started or refused process on the pipe of the supervisor that started it.

A module of its own: the supervisor announces itself, too, and loads nothing of a service.
"""

import json
import os
from collections.abc import Mapping

from svc_common import environment
from svc_common.logs import get_logger


def announce_ready(facts: Mapping[str, str]) -> None:
    """Write `{"ready": true, …}` with addresses to the supervisor's pipe, if any, and close it."""
    _announce({"ready": True, **facts})


def announce_failure(message: str) -> None:
    """Write `{"ready": false, "error": …}` to the supervisor's pipe, if any, and close it."""
    _announce({"ready": False, "error": message})


def _announce(line: Mapping[str, object]) -> None:
    descriptor = environment.integer(environment.NNI_READY_FD, -1)
    if descriptor < 0:
        return
    try:
        os.write(descriptor, (json.dumps(line) + "\n").encode())
        os.close(descriptor)
    except OSError as error:  # the supervisor has ended
        get_logger().warning("readiness not announced", error=str(error))
