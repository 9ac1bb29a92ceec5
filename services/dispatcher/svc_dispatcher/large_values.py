"""Values that are too large for a message: their JSON text lies in the byte store."""

import json
from collections.abc import Sequence

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import inbox_pb2
from nni_wire.limits import INLINE_VALUE_LIMIT_BYTES
from nni_wire.values import from_value, write_value
from svc_common.storage.ports import CONTENT_KIND, BlobStore


class ValueBlobs:
    """Puts large values into the byte store and gets them back.

    Args:
        store: the byte store that all services share.
    """

    def __init__(self, store: BlobStore) -> None:
        self._store = store

    async def fill(self, values: Sequence[value_pb2.Value]) -> None:
        """Replace references by what they stand for, in place.

        Raises:
            NotFoundError: the store has lost it.
        """
        for value in values:
            text = await self._store.get(f"{CONTENT_KIND}/{value.blob_value.sha256}")
            value.Clear()
            write_value(value, json.loads(text))

    async def shrunk(self, message: inbox_pb2.InboxMessage) -> inbox_pb2.InboxMessage:
        """Return the message, large parameters replaced by references to the store."""
        if message.ByteSize() > INLINE_VALUE_LIMIT_BYTES:
            for item in message.parameters_generated.parameters:
                await self._shrink(item.parameters)
        return message

    async def _shrink(self, value: value_pb2.Value) -> None:
        if value.ByteSize() <= INLINE_VALUE_LIMIT_BYTES:
            return
        text = json.dumps(from_value(value)).encode()
        key = await self._store.put(text)
        value.Clear()
        value.blob_value.sha256 = key.removeprefix(f"{CONTENT_KIND}/")
        value.blob_value.size_bytes = len(text)
