import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from nni.nas.utils import (
    JsonSerializer,
    Serializer,
    TorchSerializer,
    get_default_serializer,
    set_default_serializer,
)

STATE: dict[str, Any] = {"step": 3, "labels": ["a", "b"], "path": Path("one")}


@pytest.fixture(autouse=True)
def default_as_before() -> Iterator[None]:
    before = get_default_serializer()
    yield
    set_default_serializer(before)


@pytest.mark.parametrize("serializer", [TorchSerializer(), JsonSerializer()])
def test_an_object_is_read_with_and_without_the_suffix(
    serializer: Serializer, tmp_path: Path
) -> None:
    path = serializer.save(STATE, tmp_path / "state.ckpt")

    assert path == tmp_path / f"state.ckpt{serializer.suffix}"
    assert serializer.load(tmp_path / "state.ckpt") == serializer.load(str(path)) == STATE
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("serializer", [TorchSerializer(), JsonSerializer()])
def test_tensors_survive(serializer: Serializer, tmp_path: Path) -> None:
    tensor = torch.arange(3000.0)

    serializer.save({"weights": tensor}, tmp_path / "state")

    assert torch.equal(serializer.load(tmp_path / "state")["weights"], tensor)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    class Failing(JsonSerializer):
        def write(self, obj: object, path: Path) -> None:
            path.write_text("{")
            raise OSError(f"no space for {obj}")

    JsonSerializer().save(STATE, tmp_path / "state")

    with pytest.raises(OSError, match="no space"):
        Failing().save({}, tmp_path / "state")
    assert JsonSerializer().load(tmp_path / "state") == STATE


def test_a_missing_file_is_an_error_that_logs_files_of_other_formats(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    JsonSerializer().save(STATE, tmp_path / "state.ckpt")

    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(FileNotFoundError, match=r"state\.ckpt\.torch"),
    ):
        TorchSerializer().load(tmp_path / "state.ckpt")

    assert "state.ckpt.json is of another format" in caplog.text
    with pytest.raises(FileNotFoundError):
        TorchSerializer().load(tmp_path / "no folder" / "state")


def test_the_default_is_torch_and_can_be_replaced() -> None:
    assert isinstance(get_default_serializer(), TorchSerializer)

    json = JsonSerializer()
    set_default_serializer(json)

    assert get_default_serializer() is json
    with pytest.raises(TypeError, match="must be an instance of Serializer"):
        set_default_serializer(JsonSerializer)  # type: ignore[arg-type]
