import base64
from pathlib import Path
from typing import Any

import pytest

from nni.nas.execution.payload_files import PayloadFiles

LIMIT = 100
LARGE = bytes(range(256))


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture
def store(tmp_path: Path) -> PayloadFiles:
    return PayloadFiles(tmp_path / "payloads", LIMIT)


def document(data: bytes = LARGE) -> dict[str, Any]:
    return {"evaluator": {"arguments": [{"__nni_obj__": text(data)}]}}


def test_large_pickles_go_to_files_and_come_back(store: PayloadFiles) -> None:
    spilled = store.spill(document())

    (file,) = store.folder.iterdir()
    assert file.read_bytes() == LARGE
    assert spilled["evaluator"]["arguments"] == [{"__nni_obj__": f"sha256:{file.name}"}]
    assert store.restore(spilled) == document()


def test_pickles_up_to_the_limit_stay_in_the_document(store: PayloadFiles) -> None:
    small = document(bytes(LIMIT))

    assert store.spill(small) == small
    assert not store.folder.exists()


def test_classes_by_value_go_to_files_too(store: PayloadFiles) -> None:
    by_value = {"__symbol__": f"bytes:{text(LARGE)}"}

    spilled = store.spill(by_value)

    assert spilled["__symbol__"].startswith("bytes:sha256:")
    assert store.restore(spilled) == by_value


def test_equal_payloads_are_one_file(store: PayloadFiles) -> None:
    store.spill([document(), document()])
    store.spill(document())

    assert len(list(store.folder.iterdir())) == 1


def test_changed_payload_is_not_loaded(store: PayloadFiles) -> None:
    spilled = store.spill(document())
    (file,) = store.folder.iterdir()
    file.write_bytes(b"other")

    with pytest.raises(ValueError, match="has not the SHA-256 that the log of the search names"):
        store.restore(spilled)


def test_missing_payload_is_an_error_with_the_remedy(store: PayloadFiles) -> None:
    spilled = store.spill(document())
    (file,) = store.folder.iterdir()
    file.unlink()

    with pytest.raises(FileNotFoundError, match="share the folder"):
        store.restore(spilled)


@pytest.mark.parametrize("name", ["../secret", "abc", "A" * 64])
def test_names_that_are_no_hash_are_refused(store: PayloadFiles, name: str) -> None:
    with pytest.raises(ValueError, match="must be named by its SHA-256"):
        store.restore({"__nni_obj__": f"sha256:{name}"})
