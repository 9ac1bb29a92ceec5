"""Values too large for a message, stored as JSON text in the blob store."""

from collections.abc import Sequence

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import inbox_pb2
from nni_wire.limits import INLINE_VALUE_LIMIT_BYTES
from nni_wire.values import from_value, write_value
from svc_common.large_work import off_loop, parse_json, write_json
from svc_common.storage.ports import CONTENT_KIND, BlobStore


class LargeValues:
    """Loader and storer of large values, which messages replace by blob hashes.

    Args:
        store: blob store that all services share.
    """

    def __init__(self, store: BlobStore) -> None:
        self._store = store

    async def resolve(self, values: Sequence[value_pb2.Value]) -> None:
        """Load referenced blobs and write their JSON values in place of the references.

        Raises:
            NotFoundError: the store does not have a referenced blob.
        """
        for value in values:
            text = await self._store.get(f"{CONTENT_KIND}/{value.blob_value.sha256}")
            await off_loop(len(text), _read_into, value, text)

    async def offload(self, message: inbox_pb2.InboxMessage) -> inbox_pb2.InboxMessage:
        """Move the parameters of a message above the size limit to the blob store; return it."""
        if message.ByteSize() > INLINE_VALUE_LIMIT_BYTES:
            for item in message.parameters_generated.parameters:
                await self._offload_value(item.parameters)
        return message

    async def _offload_value(self, value: value_pb2.Value) -> None:
        if value.ByteSize() <= INLINE_VALUE_LIMIT_BYTES:
            return
        size_bytes = value.ByteSize()
        text = await off_loop(size_bytes, lambda: write_json(from_value(value), size_bytes))
        key = await self._store.put(text)
        value.Clear()
        value.blob_value.sha256 = key.removeprefix(f"{CONTENT_KIND}/")
        value.blob_value.size_bytes = len(text)


def _read_into(value: value_pb2.Value, text: bytes) -> None:
    """Replace a value by that of a JSON text."""
    value.Clear()
    write_value(value, parse_json(text))
