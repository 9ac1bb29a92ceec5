"""Values that are too large for messages: kept in the byte store, named by their hash."""

import json

from nni_proto.common.v1 import value_pb2
from nni_wire.limits import INLINE_VALUE_LIMIT_BYTES
from nni_wire.values import blob_of, from_value, to_value
from svc_common.storage.ports import CONTENT_KIND, BlobStore


class BigValues:
    """Moves values to the byte store and back.

    Args:
        blobs: where large values lie.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def put(self, value: value_pb2.Value) -> value_pb2.Value:
        """Return ``value``, or, if it is large, a value that says where its JSON text lies."""
        if value.ByteSize() <= INLINE_VALUE_LIMIT_BYTES or blob_of(value) is not None:
            return value
        text = json.dumps(from_value(value)).encode()
        key = await self._blobs.put(text)
        return value_pb2.Value(
            blob_value=value_pb2.BlobRef(
                sha256=key.removeprefix(f"{CONTENT_KIND}/"), size_bytes=len(text)
            )
        )

    async def load(self, value: value_pb2.Value) -> value_pb2.Value:
        """Return the value itself, wherever it lies.

        Raises:
            NotFoundError: the byte store has lost it.
        """
        blob = blob_of(value)
        if blob is None:
            return value
        text = await self._blobs.get(f"{CONTENT_KIND}/{blob.sha256}")
        return to_value(json.loads(text))
