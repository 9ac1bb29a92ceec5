"""Documents of explorations in the blob store."""

from nni_proto.common.v1 import value_pb2
from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.storage.ports import CONTENT_KIND, BlobStore


class StoredDocuments:
    """Reader of exploration documents in the blob store: checks references, returns texts.

    Args:
        blobs: the blob store.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def check(self, blob: value_pb2.BlobRef) -> None:
        """Raise InvalidArgumentError unless a document is stored with the size in its reference.

        Raises:
            InvalidArgumentError: it is not stored, or has another size.
        """
        try:
            info = await self._blobs.info(f"{CONTENT_KIND}/{blob.sha256}")
        except NotFoundError as error:
            raise InvalidArgumentError(
                "nas.document",
                "must be stored",
                blob.sha256,
                "upload it with ByteService before the exploration is created",
            ) from error
        if info.size_bytes != blob.size_bytes:
            raise InvalidArgumentError(
                "nas.document.size_bytes", f"must be {info.size_bytes}", blob.size_bytes
            )

    async def text(self, sha256: str) -> str:
        """Return the text of a document; the store checks its hash.

        Raises:
            NotFoundError: it is not stored.
        """
        return (await self._blobs.get(f"{CONTENT_KIND}/{sha256}")).decode("utf-8")
