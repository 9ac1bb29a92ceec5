"""Large values in the blob store."""

import pytest

from svc_common.errors import ResourceExhaustedError
from svc_common.storage.memory import InMemoryBlobStore
from svc_trial_runner.adapters.blob_values import StoredLargeValues
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import LaunchError

ATTEMPT = AttemptKey("e1", "t1", 1)


def values_in(store: InMemoryBlobStore) -> StoredLargeValues:
    return StoredLargeValues(lambda _: store)


class FullStore(InMemoryBlobStore):
    async def put(self, data: bytes) -> str:
        raise ResourceExhaustedError("no space")


async def test_value_comes_back_by_its_key() -> None:
    values = values_in(InMemoryBlobStore())

    key = await values.store(ATTEMPT, {"x": [1, 2.5, None]})

    assert key.size_bytes == len(b'{"x": [1, 2.5, null]}')
    assert await values.load(ATTEMPT, key) == {"x": [1, 2.5, None]}


async def test_missing_value_is_an_error_with_its_hash() -> None:
    with pytest.raises(LaunchError, match="the value abc cannot be loaded"):
        await values_in(InMemoryBlobStore()).load(ATTEMPT, BlobKey("abc", 3))


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000])
async def test_value_that_is_no_json_is_an_error(content: bytes) -> None:
    store = InMemoryBlobStore()
    key = await store.put(content)

    with pytest.raises(LaunchError, match="cannot be loaded"):
        await values_in(store).load(ATTEMPT, BlobKey(key.removeprefix("sha256/"), 1))


async def test_full_store_is_an_error() -> None:
    with pytest.raises(LaunchError, match=r"cannot be kept: .*no space"):
        await values_in(FullStore()).store(ATTEMPT, 1)
