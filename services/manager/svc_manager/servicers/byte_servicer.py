"""gRPC servicer of the byte store."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final, TypeAlias

import grpc.aio
from google.protobuf.timestamp_pb2 import Timestamp

from nni_proto.bytes.v1 import byte_service_pb2 as pb
from nni_proto.bytes.v1 import byte_service_pb2_grpc as pb_grpc
from svc_common.errors import InvalidArgumentError
from svc_manager.blobs.garbage_collector import CollectionResult
from svc_manager.usecases.request_checks import length_ms
from svc_manager.usecases.storage import Storage
from svc_manager.usecases.uploads import BlobTransfers, Purpose, TransferRoute, Upload

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]

KEYS_SHOWN: Final = 1000
"""Maximum keys of deleted blobs in a response."""

_PURPOSES: Final = {
    pb.BLOB_PURPOSE_CODE: Purpose.CODE,
    pb.BLOB_PURPOSE_VALUE: Purpose.VALUE,
    pb.BLOB_PURPOSE_CHECKPOINT: Purpose.CHECKPOINT,
    pb.BLOB_PURPOSE_OUTPUT: Purpose.OUTPUT,
}


class ByteServicer(pb_grpc.ByteServiceServicer):
    """gRPC servicer of uploads, downloads, storage usage and garbage collection.

    Args:
        transfers: use cases of uploads and downloads.
        storage: use cases on the store as a whole.
    """

    def __init__(self, transfers: BlobTransfers, storage: Storage) -> None:
        self._transfers = transfers
        self._storage = storage

    async def DescribeStore(
        self, request: pb.DescribeStoreRequest, context: Context
    ) -> pb.DescribeStoreResponse:
        """Return whether a client must upload its code before it creates an experiment."""
        return pb.DescribeStoreResponse(code_travels=self._storage.code_travels)

    async def PrepareUpload(
        self, request: pb.PrepareUploadRequest, context: Context
    ) -> pb.PrepareUploadResponse:
        """Reserve space for a blob; return its key and whether to send it by URL, stream or not."""
        route = await self._transfers.prepare_upload(upload_from(request))
        answer = pb.PrepareUploadResponse(key=route.key, expires_at=_time(route))
        if route.stored:
            answer.stored = True
        elif route.url:
            answer.url = route.url
        else:
            answer.stream = True
        return answer

    async def Upload(
        self, request_iterator: AsyncIterator[pb.UploadRequest], context: Context
    ) -> pb.UploadResponse:
        """Store streamed content as the first message's header describes it; return its key."""
        first = await anext(aiter(request_iterator), None)
        if first is None or not first.HasField("header"):
            raise InvalidArgumentError("header", "must be in the first message")
        key = await self._transfers.receive(
            upload_from(first.header), _chunks(first.data, request_iterator)
        )
        return pb.UploadResponse(key=key)

    async def CompleteUpload(
        self, request: pb.CompleteUploadRequest, context: Context
    ) -> pb.CompleteUploadResponse:
        """Finish an upload by presigned URL: check the stored blob and make it usable."""
        await self._transfers.complete_upload(upload_from(request.header))
        return pb.CompleteUploadResponse()

    async def PrepareDownload(
        self, request: pb.PrepareDownloadRequest, context: Context
    ) -> pb.PrepareDownloadResponse:
        """Return a presigned URL to download a blob, or that it must be streamed."""
        route = await self._transfers.prepare_download(
            request.key, request.experiment_id, request.trial_id
        )
        answer = pb.PrepareDownloadResponse(expires_at=_time(route))
        if route.url:
            answer.url = route.url
        else:
            answer.stream = True
        return answer

    async def Download(
        self, request: pb.DownloadRequest, context: Context
    ) -> AsyncIterator[pb.DownloadResponse]:
        """Stream the content of a blob to the client, in pieces."""
        sent = self._transfers.send(request.key, request.experiment_id, request.trial_id)
        async with aclosing(sent) as pieces:
            async for data in pieces:
                yield pb.DownloadResponse(data=data)

    async def GetUsage(self, request: pb.GetUsageRequest, context: Context) -> pb.GetUsageResponse:
        """Return used bytes and blob counts, in total and by experiment, with the quotas."""
        usage = await self._storage.usage(request.experiment_id)
        return pb.GetUsageResponse(
            used_bytes=usage.total.used_bytes,
            blob_count=usage.total.blob_count,
            limit_bytes=usage.quota.installation_bytes,
            experiment_limit_bytes=usage.quota.experiment_bytes,
            experiments=[
                pb.ExperimentUsage(
                    experiment_id=experiment_id,
                    used_bytes=use.used_bytes,
                    blob_count=use.blob_count,
                )
                for experiment_id, use in usage.experiments
            ],
        )

    async def CollectGarbage(
        self, request: pb.CollectGarbageRequest, context: Context
    ) -> pb.CollectGarbageResponse:
        """Delete (or only list) unreferenced blobs older than a grace; return counts and keys."""
        grace_ms = length_ms(request.grace, "grace") if request.HasField("grace") else None
        collected = await self._storage.clean(dry_run=request.dry_run, grace_ms=grace_ms)
        return collection_message(collected)


def collection_message(collected: CollectionResult) -> pb.CollectGarbageResponse:
    """Convert the result of a garbage collection to its gRPC response, with at most 1,000 keys."""
    return pb.CollectGarbageResponse(
        deleted_count=len(collected.deleted),
        deleted_bytes=collected.deleted_bytes,
        kept_count=collected.kept_count,
        kept_bytes=collected.kept_bytes,
        keys=[blob.key for blob in collected.deleted[:KEYS_SHOWN]],
    )


def upload_from(request: pb.PrepareUploadRequest) -> Upload:
    """Convert an upload's proto header to the domain; raise if its purpose is invalid.

    Raises:
        InvalidArgumentError: it has no valid purpose.
    """
    purpose = _PURPOSES.get(request.purpose)
    if purpose is None:
        raise InvalidArgumentError("purpose", "must be given", int(request.purpose))
    return Upload(
        purpose,
        request.blob.sha256,
        request.blob.size_bytes,
        request.experiment_id,
        request.trial_id,
        request.attempt,
        request.file_name,
    )


async def _chunks(first: bytes, rest: AsyncIterator[pb.UploadRequest]) -> AsyncIterator[bytes]:
    yield first
    async for message in rest:
        yield message.data


def _time(route: TransferRoute) -> Timestamp:
    moment = Timestamp()
    moment.FromDatetime(route.expires_at)
    return moment
