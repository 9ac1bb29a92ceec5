"""Code of trials: folders of unpacked archives, and a copy for each trial."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.storage.code_archives import CodeArchives, CodeError
from svc_common.storage.ports import BlobExchange
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import LaunchError


class CachedCodeStore:
    """`CodeStore`: folders of unpacked archives from the cache, and copies for the trials' account.

    Args:
        archives: the cache.
        code_user: account of trials, which copies belong to.
        of_attempt: returns the access of an attempt to the blob store; None: that of the cache.
    """

    def __init__(
        self,
        archives: CodeArchives,
        code_user: CodeUser = SAME_USER,
        of_attempt: Callable[[AttemptKey], BlobExchange] | None = None,
    ) -> None:
        self._archives = archives
        self._of_attempt = of_attempt
        self._code_user = code_user

    async def materialise(self, attempt: AttemptKey, archive: BlobKey) -> Path:
        """Return the folder of an unpacked code archive; download and unpack it at first use."""
        source = None if self._of_attempt is None else self._of_attempt(attempt)
        try:
            return await self._archives.unpacked(archive.sha256, source)
        except CodeError as error:
            raise LaunchError(error.message) from error

    async def copy(self, place: Path, target: Path) -> None:
        """Replace the code in a trial's folder by a copy; LaunchError if it cannot be copied."""
        try:
            await asyncio.to_thread(_copy, place, target, self._code_user)
        except OSError as error:
            raise LaunchError(f"the code cannot be copied to {target}: {error}") from error


def _copy(place: Path, target: Path, code_user: CodeUser) -> None:
    with code_user.acting():
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(place, target, symlinks=True)
