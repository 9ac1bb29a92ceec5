"""Files of trials in the blob store."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nni_wire.trial_blobs import output_key
from svc_common.code_user import SAME_USER, CodeUser
from svc_common.storage.archives import ArchiveLimits, extract, pack
from svc_common.storage.ports import CONTENT_KIND
from svc_common.storage.retries import RetryingBlobExchange
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import FinishedTrial

CHECKPOINT_LIMITS: Final = ArchiveLimits(files=100_000, size_bytes=5 * 1024**3)
"""Limits of a checkpoint; the store takes no more in one piece."""


class StoredTrialBlobs:
    """Transfer of checkpoints and outputs to and from the blob store.

    Args:
        common: for outputs.
        of_attempt: returns the exchange for the checkpoints of an attempt.
    """

    def __init__(
        self,
        common: RetryingBlobExchange,
        of_attempt: Callable[[AttemptKey], RetryingBlobExchange],
    ) -> None:
        self._common = common
        self._of_attempt = of_attempt
        self._used: list[RetryingBlobExchange] = []

    @property
    def trouble(self) -> str:
        """Reason why calls wait now, as text; empty: none waits."""
        return next((one.trouble for one in (self._common, *self._used) if one.trouble), "")

    async def fetch(self, attempt: AttemptKey, blob: BlobKey, path: Path) -> None:
        """Write a blob to a file, which appears as a whole or not at all."""
        with self._exchange(attempt) as exchange:
            await exchange.fetch(f"{CONTENT_KIND}/{blob.sha256}", path)

    async def keep_checkpoint(self, attempt: AttemptKey, path: Path) -> BlobKey:
        """Upload an attempt's checkpoint archive; return its content hash and size."""
        with self._exchange(attempt) as exchange:
            key = await exchange.put_file(path)
        return BlobKey(key.removeprefix(f"{CONTENT_KIND}/"), path.stat().st_size)  # noqa: ASYNC240 - one stat

    @contextmanager
    def _exchange(self, attempt: AttemptKey) -> Iterator[RetryingBlobExchange]:
        """Yield an attempt's blob exchange; its errors count as trouble during the block."""
        exchange = self._of_attempt(attempt)
        self._used.append(exchange)
        try:
            yield exchange
        finally:
            self._used.remove(exchange)

    async def keep_output(self, trial: FinishedTrial, file_name: str, path: Path) -> None:
        """Store a file of a trial; an earlier file of the same name is replaced."""
        key = output_key(trial.experiment_id, trial.trial_id, trial.attempt, file_name)
        await self._common.put_named_file(key, path)


class TarFolders:
    """Packer and unpacker of folders as tar archives.

    Args:
        code_user: account of trials, which the unpacked files belong to.
    """

    def __init__(self, code_user: CodeUser = SAME_USER) -> None:
        self._code_user = code_user

    def pack(self, folder: Path, archive: Path, without: frozenset[str] = frozenset()) -> int:
        """Write a folder, without some direct entries, to a file; return the number of entries."""
        with self._code_user.acting():
            return pack(folder, archive, without)

    def extract(self, archive: Path, folder: Path) -> None:
        """Unpack an untrusted archive into a new folder."""
        with self._code_user.acting():
            extract(archive, folder, CHECKPOINT_LIMITS)
