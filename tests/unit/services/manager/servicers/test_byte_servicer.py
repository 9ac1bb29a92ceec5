import pytest

from nni_proto.bytes.v1 import byte_service_pb2 as pb
from svc_common.errors import InvalidArgumentError
from svc_manager.blobs.garbage_collector import CollectionResult
from svc_manager.domain.garbage import StoredBlob
from svc_manager.servicers.byte_servicer import KEYS_SHOWN, collection_message, upload_from
from svc_manager.usecases.uploads import Purpose


@pytest.mark.parametrize("purpose", list(Purpose))
def test_an_upload_keeps_its_description(purpose: Purpose) -> None:
    request = pb.PrepareUploadRequest(
        purpose=pb.BlobPurpose.Value(f"BLOB_PURPOSE_{purpose.name}"),
        experiment_id="e1",
        trial_id="t1",
        attempt=2,
        file_name="stdout",
    )
    request.blob.sha256 = "ab" * 32
    request.blob.size_bytes = 7

    upload = upload_from(request)

    assert upload.purpose is purpose
    assert (upload.sha256, upload.size_bytes) == ("ab" * 32, 7)
    assert (upload.experiment_id, upload.trial_id, upload.attempt) == ("e1", "t1", 2)


def test_an_upload_without_a_purpose_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="purpose must be given"):
        upload_from(pb.PrepareUploadRequest())


def test_a_response_names_a_limited_number_of_keys() -> None:
    deleted = tuple(StoredBlob(f"sha256/{n}", 2, 0) for n in range(KEYS_SHOWN + 5))

    message = collection_message(CollectionResult(deleted, kept_count=3, kept_bytes=9))

    assert message.deleted_count == KEYS_SHOWN + 5
    assert message.deleted_bytes == 2 * (KEYS_SHOWN + 5)
    assert len(message.keys) == KEYS_SHOWN
    assert (message.kept_count, message.kept_bytes) == (3, 9)
