from __future__ import annotations

import pytest

from nni_wire.values import blob_of, from_value, to_value
from svc_common.errors import NotFoundError
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.blobs.large_values import KEPT_BYTES, LargeValues

LARGE = "x" * 300_000


async def emptied(blobs: InMemoryBlobStore) -> None:
    for key in await blobs.keys("sha256/"):
        await blobs.delete(key)


async def test_small_value_stays_where_it_is() -> None:
    value = to_value({"lr": 0.1})

    assert await LargeValues(InMemoryBlobStore()).put(value) is value


async def test_large_value_becomes_a_reference_and_back() -> None:
    blobs = InMemoryBlobStore()
    value = to_value({"x": LARGE})

    reference = await LargeValues(blobs).put(value)

    assert blob_of(reference) is not None
    assert from_value(await LargeValues(blobs).load(reference)) == {"x": LARGE}


@pytest.mark.parametrize("used_by", ["put", "load"])
async def test_value_in_use_needs_no_store(used_by: str) -> None:
    blobs = InMemoryBlobStore()
    values = LargeValues(blobs)
    value = to_value(LARGE)
    reference = await values.put(value)
    value.Clear()
    if used_by == "load":
        values = LargeValues(blobs)
        await values.load(reference)
    await emptied(blobs)

    assert from_value(await values.load(reference)) == LARGE


async def test_what_was_used_longest_ago_leaves_the_memory_first() -> None:
    blobs = InMemoryBlobStore()
    values = LargeValues(blobs)
    third = "y" * (KEPT_BYTES // 3)
    first, second, last = [await values.put(to_value(f"{n}{third}")) for n in range(3)]
    await values.load(first)
    await emptied(blobs)

    assert from_value(await values.load(first)) == f"0{third}"
    assert from_value(await values.load(last)) == f"2{third}"
    with pytest.raises(NotFoundError):
        await values.load(second)
