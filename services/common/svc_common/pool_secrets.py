"""Files of the secret values of pools: passwords, tokens and keys of their platforms.

A configuration is logged, so it has no secret value. The manager writes the values of one platform
of a pool into a file that only this user may read, and the fleet reads them there: a JSON object
of values by their path within the section of the platform, such as `machineList[0].password`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from svc_common.durable_files import write_private
from svc_common.errors import InvalidArgumentError
from svc_common.subjects import check_id

POOL_SECRETS_FOLDER: Final = "pool-secrets"
"""Folder of the files below the home of an installation."""


def secrets_id_of(pool: str, index: int, number: int = 0) -> str:
    """Return the id of a platform's secrets: `POOL`, `POOL_INDEX` or `POOL_INDEX_NUMBER`.

    Args:
        pool: the pool.
        index: number of the platform in the pool's configuration; the id of the first one is the
            name of the pool; no platform takes a pool with `_` in its name.
        number: distinguishes the values that a pool has had one after the other; 0: it has one set.
    """
    if number:
        return f"{pool}_{index}_{number}"
    return f"{pool}_{index}" if index else pool


class PoolSecrets:
    """Store of secret values in files with mode 0600, one per platform of a pool.

    Args:
        home: home of the installation.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / POOL_SECRETS_FOLDER

    def write(self, secrets_id: str, values: Mapping[str, str]) -> None:
        """Replace the secret values of an id, in one step.

        Raises:
            InvalidArgumentError: no file can have the id.
            OSError: the file cannot be written.
        """
        path = self._path(secrets_id)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, json.dumps(dict(values)))

    def read(self, secrets_id: str) -> dict[str, str]:
        """Return the secret values of an id by path; empty if it has none.

        Raises:
            InvalidArgumentError: the file is damaged; its content is not shown.
            OSError: the file cannot be read.
        """
        path = self._path(secrets_id)
        try:
            values: Any = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            # Without the error: it may quote the content.
            raise InvalidArgumentError(
                "secrets", "must be a JSON object", str(path), "delete it and create it again"
            )
        return {str(name): str(value) for name, value in values.items()}

    def remove(self, secrets_id: str) -> None:
        """Delete the secret values of an id.

        Raises:
            OSError: the file cannot be deleted.
        """
        self._path(secrets_id).unlink(missing_ok=True)

    def remove_pool(self, pool: str) -> None:
        """Delete the secret values of all platforms of a pool.

        Raises:
            OSError: a file cannot be deleted.
        """
        check_id("pool", pool)
        for path in [self._path(pool), *self._folder.glob(f"{pool}_*.json")]:
            path.unlink(missing_ok=True)

    def _path(self, secrets_id: str) -> Path:
        return self._folder / f"{check_id('secrets_id', secrets_id)}.json"
