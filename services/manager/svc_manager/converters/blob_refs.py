"""References of events to blobs in the byte store."""

import re
from collections.abc import Iterator
from typing import Final

from google.protobuf.message import Message

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import event_pb2

_DIGEST: Final = re.compile(rb"[0-9a-f]{64}")


def blob_digests(payload: bytes) -> set[str]:
    """Return the SHA-256 hashes of all blobs named in an encoded batch of events; or raise.

    Raises:
        google.protobuf.message.DecodeError: the payload is not a batch.
    """
    # Few batches name a blob, and walking all messages would cost most of a fold.
    if not _DIGEST.search(payload):
        return set()
    return set(_digests_in(event_pb2.EventBatch.FromString(payload)))


def _digests_in(message: Message) -> Iterator[str]:
    if isinstance(message, value_pb2.BlobRef):
        yield message.sha256
        return
    for field, content in message.ListFields():
        if field.message_type is None:
            continue
        if isinstance(content, Message):
            yield from _digests_in(content)
            continue
        items = content.values() if field.message_type.GetOptions().map_entry else content
        for item in items:
            if isinstance(item, Message):
                yield from _digests_in(item)
