"""Documents of explorations in the blob store."""

from __future__ import annotations

import pytest

from nni_proto.common.v1 import value_pb2
from svc_common.errors import InvalidArgumentError
from svc_common.storage.memory import InMemoryBlobStore
from svc_nas.stored_documents import StoredDocuments


async def test_stored_document_is_read_by_its_hash() -> None:
    blobs = InMemoryBlobStore()
    sha256 = (await blobs.put(b'{"space": 1}')).rpartition("/")[2]
    documents = StoredDocuments(blobs)

    await documents.check(value_pb2.BlobRef(sha256=sha256, size_bytes=12))

    assert await documents.text(sha256) == '{"space": 1}'


async def test_missing_document_is_refused_with_the_remedy() -> None:
    documents = StoredDocuments(InMemoryBlobStore())

    with pytest.raises(InvalidArgumentError, match="ByteService"):
        await documents.check(value_pb2.BlobRef(sha256="0" * 64, size_bytes=1))


async def test_other_size_is_refused() -> None:
    blobs = InMemoryBlobStore()
    sha256 = (await blobs.put(b"abc")).rpartition("/")[2]

    with pytest.raises(InvalidArgumentError, match="size_bytes"):
        await StoredDocuments(blobs).check(value_pb2.BlobRef(sha256=sha256, size_bytes=4))
