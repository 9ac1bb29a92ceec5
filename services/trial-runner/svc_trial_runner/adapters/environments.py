"""Environments of the clients that created experiments, from the manager's files."""

import json
import os
from collections.abc import Mapping
from typing import Final

from svc_trial_runner.ports import ClientEnvironment, LaunchError

_KEPT: Final = 64


class FileEnvironments:
    """Reader and cache of the environment files of the clients that created experiments.

    Args:
        own: variables of the agent, for trials without such a file.
        interpreter: Python that belongs to `own`.
    """

    def __init__(self, own: Mapping[str, str], interpreter: str) -> None:
        self._own = ClientEnvironment(dict(own), interpreter)
        self._known: dict[str, tuple[tuple[int, int, int], ClientEnvironment]] = {}

    async def load(self, path: str) -> ClientEnvironment:
        """Read an environment file, cached until it changes; empty path: the agent's own."""
        if not path:
            return self._own
        try:
            facts = os.stat(path)  # noqa: PTH116 - once a trial; costs half of Path.stat
            stamp = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            environment = _read(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise LaunchError(f"the environment {path} cannot be read: {error}") from error
        if len(self._known) >= _KEPT:
            self._known.clear()
        self._known[path] = (stamp, environment)
        return environment


def _read(path: str) -> ClientEnvironment:
    # A trial may have put a link or a pipe in the place of the file.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        data = json.load(file)
    variables = {str(name): str(value) for name, value in data["environment"].items()}
    return ClientEnvironment(variables, data.get("interpreter") or None)
