"""`SecretStore` over the files of secret values in the home of the installation."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from svc_common.errors import FailedPreconditionError
from svc_common.pool_secrets import POOL_SECRETS_FOLDER, PoolSecrets

T = TypeVar("T")


class PoolSecretFiles:
    """`SecretStore` of files that only this user may read, accessed off the loop.

    Args:
        home: home of the installation.
    """

    def __init__(self, home: Path) -> None:
        self._secrets = PoolSecrets(home)
        self._folder = home / POOL_SECRETS_FOLDER

    async def write(self, secrets_id: str, values: Mapping[str, str]) -> None:
        """Replace the file of an id's secret values, in a thread."""
        await self._run(lambda: self._secrets.write(secrets_id, values))

    async def read(self, secrets_id: str) -> dict[str, str]:
        """Return the secret values of an id by path; empty if it has none."""
        return await self._run(lambda: self._secrets.read(secrets_id))

    async def remove(self, secrets_id: str) -> None:
        """Delete the file of an id's secret values, in a thread; do nothing if there is none."""
        await self._run(lambda: self._secrets.remove(secrets_id))

    async def remove_pool(self, pool: str) -> None:
        """Delete the files of secret values of all of a pool's platforms, in a thread."""
        await self._run(lambda: self._secrets.remove_pool(pool))

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            raise FailedPreconditionError(
                f"secrets cannot be stored in {self._folder}: {error.strerror or error}",
                {"folder": str(self._folder)},
            ) from error
