"""Large values as JSON text in the blob store."""

import json
from typing import Any

from svc_common.errors import NotFoundError, ServiceError
from svc_common.storage.ports import CONTENT_KIND, BlobExchange
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import LaunchError, UnfitTrialError


class StoredLargeValues:
    """Loader and storer of JSON values that are too large for a message, as blobs.

    Args:
        blobs: the store.
    """

    def __init__(self, blobs: BlobExchange) -> None:
        self._blobs = blobs

    async def load(self, blob: BlobKey) -> Any:  # noqa: ANN401 - any JSON value
        """Load a JSON value from the blob store by its hash; raise LaunchError if it fails."""
        try:
            return json.loads(await self._blobs.get(f"{CONTENT_KIND}/{blob.sha256}"))
        except (NotFoundError, ValueError, RecursionError) as error:
            raise UnfitTrialError(f"the value {blob.sha256} cannot be loaded: {error}") from error
        except ServiceError as error:
            raise LaunchError(f"the value {blob.sha256} cannot be loaded: {error}") from error

    async def store(self, value: Any) -> BlobKey:  # noqa: ANN401 - any JSON value
        """Store a value as JSON in the blob store; return its hash and size."""
        data = json.dumps(value).encode()
        try:
            key = await self._blobs.put(data)
        except ServiceError as error:
            raise LaunchError(f"the value cannot be kept: {error}") from error
        return BlobKey(key.removeprefix(f"{CONTENT_KIND}/"), len(data))
