"""Upload of code, against a store in memory."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nni.experiment.byte_client import upload_code, upload_value
from nni_proto.bytes.v1 import byte_service_pb2 as pb


class InMemoryByteStore:
    """Blobs by hash; offers an address to send to if it has one."""

    def __init__(self, url: str = "") -> None:
        self.blobs: dict[str, bytes] = {}
        self.completed: list[str] = []
        self._url = url

    def prepare_upload(self, request: pb.PrepareUploadRequest) -> pb.PrepareUploadResponse:
        if request.blob.sha256 in self.blobs:
            return pb.PrepareUploadResponse(stored=True)
        return pb.PrepareUploadResponse(url=self._url)

    def complete_upload(self, header: pb.PrepareUploadRequest) -> None:
        self.completed.append(header.blob.sha256)

    def upload(self, messages: Callable[[], Iterator[pb.UploadRequest]]) -> None:
        for _ in range(2):  # a broken upload begins again
            header, *pieces = messages()
        self.blobs[header.header.blob.sha256] = b"".join(piece.data for piece in pieces)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "trial.py").write_text("print(1)")
    return tmp_path


def test_archive_is_stored_under_its_hash(code: Path) -> None:
    store = InMemoryByteStore()

    blob = upload_code(store, code)

    assert hashlib.sha256(store.blobs[blob.sha256]).hexdigest() == blob.sha256
    assert len(store.blobs[blob.sha256]) == blob.size_bytes


def test_what_is_stored_is_not_sent_again(code: Path) -> None:
    store = InMemoryByteStore()
    blob = upload_code(store, code)
    store.blobs[blob.sha256] = b"kept"

    assert upload_code(store, code) == blob

    assert store.blobs[blob.sha256] == b"kept"


def test_address_that_cannot_be_reached_leads_through_the_manager(code: Path) -> None:
    store = InMemoryByteStore("http://127.0.0.1:1/bucket/key?signature=s")

    blob = upload_code(store, code)

    assert list(store.blobs) == [blob.sha256]
    assert store.completed == []


def test_value_is_stored_under_its_hash_once() -> None:
    store = InMemoryByteStore()

    first = upload_value(store, b"text")
    store.blobs[first.sha256] = b"kept"
    second = upload_value(store, b"text")

    assert first == second
    assert first.sha256 == hashlib.sha256(b"text").hexdigest()
    assert store.blobs[first.sha256] == b"kept"
