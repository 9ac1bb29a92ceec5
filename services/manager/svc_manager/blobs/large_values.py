"""Store of values that are too large for messages, named by their hash."""

from collections import OrderedDict
from typing import Final

from nni_proto.common.v1 import value_pb2
from nni_wire.limits import INLINE_VALUE_LIMIT_BYTES
from nni_wire.values import blob_of, from_value, to_value
from svc_common.large_work import copy_of, off_loop, parse_json, write_json
from svc_common.storage.ports import CONTENT_KIND, BlobStore

KEPT_BYTES: Final = 16 * 1024 * 1024
"""Size of the cache of recent values: values that every status needs, like a search space, are not
read again each time, and are available while the byte store is not."""


class LargeValues:
    """Store that moves values above a size limit to the byte store; caches loaded ones.

    Args:
        blobs: the byte store.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._kept: OrderedDict[str, tuple[int, value_pb2.Value]] = OrderedDict()
        self._kept_bytes = 0

    async def put(self, value: value_pb2.Value) -> value_pb2.Value:
        """Store a value above the inline limit as a JSON blob; return a reference, else itself."""
        size_bytes = value.ByteSize()
        if size_bytes <= INLINE_VALUE_LIMIT_BYTES or blob_of(value) is not None:
            return value
        text = await off_loop(size_bytes, lambda: write_json(from_value(value), size_bytes))
        key = await self._blobs.put(text)
        sha256 = key.removeprefix(f"{CONTENT_KIND}/")
        if len(text) <= KEPT_BYTES:
            # A copy, as the caller may replace it by the reference.
            self._keep(sha256, len(text), await copy_of(value))
        return value_pb2.Value(blob_value=value_pb2.BlobRef(sha256=sha256, size_bytes=len(text)))

    async def load(self, value: value_pb2.Value) -> value_pb2.Value:
        """Return the value that a blob reference names, cached, or raise; any other value as it is.

        Raises:
            NotFoundError: the byte store has lost it.
        """
        blob = blob_of(value)
        if blob is None:
            return value
        if blob.sha256 in self._kept:
            self._kept.move_to_end(blob.sha256)
            return self._kept[blob.sha256][1]
        text = await self._blobs.get(f"{CONTENT_KIND}/{blob.sha256}")
        found = await off_loop(len(text), lambda: to_value(parse_json(text)))
        self._keep(blob.sha256, len(text), found)
        return found

    async def has(self, sha256: str) -> bool:
        """Return whether the byte store, not the cache, has content with this SHA-256."""
        return await self._blobs.exists(f"{CONTENT_KIND}/{sha256}")

    def _keep(self, sha256: str, size_bytes: int, value: value_pb2.Value) -> None:
        if sha256 in self._kept or size_bytes > KEPT_BYTES:
            return
        self._kept[sha256] = (size_bytes, value)
        self._kept_bytes += size_bytes
        while self._kept_bytes > KEPT_BYTES:
            _, (gone_bytes, _) = self._kept.popitem(last=False)
            self._kept_bytes -= gone_bytes
