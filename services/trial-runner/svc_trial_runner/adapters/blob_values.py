"""Large values as JSON text in the blob store."""

import json
from collections.abc import Callable
from typing import Any

from svc_common.errors import NotFoundError, ServiceError
from svc_common.storage.ports import CONTENT_KIND, BlobExchange
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import LaunchError, UnfitTrialError


class StoredLargeValues:
    """Loader and storer of JSON values that are too large for a message, as blobs.

    Args:
        of_attempt: returns the access of an attempt to the store.
    """

    def __init__(self, of_attempt: Callable[[AttemptKey], BlobExchange]) -> None:
        self._of_attempt = of_attempt

    async def load(self, attempt: AttemptKey, blob: BlobKey) -> Any:  # noqa: ANN401 - any JSON value
        """Load an attempt's JSON value from the blob store by hash; LaunchError if it fails."""
        try:
            return json.loads(await self._of_attempt(attempt).get(f"{CONTENT_KIND}/{blob.sha256}"))
        except (NotFoundError, ValueError, RecursionError) as error:
            raise UnfitTrialError(f"the value {blob.sha256} cannot be loaded: {error}") from error
        except ServiceError as error:
            raise LaunchError(f"the value {blob.sha256} cannot be loaded: {error}") from error

    async def store(self, attempt: AttemptKey, value: Any) -> BlobKey:  # noqa: ANN401 - any JSON value
        """Store a value as JSON blob; return hash and size; LaunchError if it cannot be stored."""
        data = json.dumps(value).encode()
        try:
            key = await self._of_attempt(attempt).put(data)
        except ServiceError as error:
            raise LaunchError(f"the value cannot be kept: {error}") from error
        return BlobKey(key.removeprefix(f"{CONTENT_KIND}/"), len(data))
