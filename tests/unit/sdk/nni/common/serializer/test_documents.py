import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nni
from nni.common.serializer import PayloadTooLarge, dump_bytes
from nni.common.serializer.pickles import pickled

CONV2D = (
    '{"__symbol__": "path:torch.nn.modules.conv.Conv2d", '
    '"__kwargs__": {"in_channels": 3, "out_channels": 16, "kernel_size": 3}}'
)


def blob(length: int) -> bytearray:
    """Return an object whose pickle has a length."""
    return bytearray(length - (len(pickled(bytearray(2000))) - 2000))


@pytest.mark.claim("nas", 1)
def test_a_traced_module_is_written_as_its_call_and_loads_equal() -> None:
    module = nni.trace(nn.Conv2d)(3, 16, 3)

    made = nni.load(nni.dump(module))

    assert nni.dump(module) == CONV2D
    assert repr(made) == repr(module)
    assert nni.dump(made) == CONV2D


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({1, 2}, '{"__set__": [1, 2]}'),
        (Path("/a/b"), '{"__pathlib__": "/a/b"}'),
        (1 + 2j, '{"__complex__": [1.0, 2.0]}'),
        (float("nan"), "NaN"),
    ],
)
def test_documented_texts_are_written(value: object, text: str) -> None:
    assert nni.dump(value) == text


@pytest.mark.claim("nas", 10)
def test_a_pickle_of_4096_bytes_passes_and_a_longer_one_does_not() -> None:
    largest, larger = blob(4096), blob(4097)
    assert (len(pickled(largest)), len(pickled(larger))) == (4096, 4097)

    assert nni.load(nni.dump(largest)) == largest
    assert nni.load(nni.dump(larger, pickle_size_limit=0)) == larger
    with pytest.raises(PayloadTooLarge, match=r"bytearray.*4,097"):
        nni.dump(larger)


@pytest.mark.claim("nas", 12)
def test_a_document_is_read_from_text_or_file(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    with path.open("w") as file:
        text = nni.dump({"a": {1}}, file)

    with path.open() as file:
        assert nni.load(fp=file) == nni.load(text) == {"a": {1}}
    with path.open() as file, pytest.raises(TypeError, match=r"nni\.load\(fp=\.\.\.\)"):
        nni.load(file)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="exactly one"):
        nni.load()
    with pytest.raises(AssertionError, match="exactly one"):
        nni.load("1", fp=io.StringIO("1"))


@pytest.mark.claim("nas", 14)
def test_text_is_not_compressed() -> None:
    with pytest.raises(ValueError, match="dump_bytes"):
        nni.dump(1, compression=True)


@pytest.mark.claim("nas", 16)
def test_a_class_is_written_by_path_and_a_lambda_by_value() -> None:
    assert nni.dump(torch.optim.Adam) == '{"__nni_type__": "path:torch.optim.adam.Adam"}'
    assert nni.dump(lambda number: number).startswith('{"__nni_type__": "bytes:')
    assert nni.load(nni.dump(lambda number: number + 1))(2) == 3


@pytest.mark.parametrize(
    "value", [torch.float16, torch.device("cpu"), frozenset({1}), torch.nn.Parameter]
)
def test_values_of_torch_and_others_survive(value: object) -> None:
    assert nni.load(nni.dump(value)) == value


def test_tensors_survive() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)

    assert torch.equal(nni.load(nni.dump([tensor]))[0], tensor)


def test_options_of_json_pass_through_and_others_do_not() -> None:
    assert nni.dump({"b": 1, "a": 2}, indent=1, sort_keys=True) == '{\n "a": 2,\n "b": 1\n}'
    with pytest.raises(TypeError, match="no option 'colour'; options: ensure_ascii, indent"):
        nni.dump(1, colour=True)
    with pytest.raises(ValueError, match="JSON compliant"):
        nni.dump(float("nan"), allow_nan=False)


@pytest.mark.parametrize("compression", [False, True, 1, 9])
def test_bytes_are_read_compressed_or_not(compression: Any) -> None:
    file = io.BytesIO()
    data = dump_bytes({"a": {1}}, file, compression=compression)

    file.seek(0)
    assert nni.load(data) == nni.load(fp=file) == {"a": {1}}
    assert data.startswith(b"\x1f\x8b") == bool(compression)


def test_a_level_that_gzip_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="level from 1 to 9, got 10"):
        dump_bytes(1, compression=10)


def test_what_is_neither_text_nor_bytes_is_refused() -> None:
    with pytest.raises(TypeError, match="must be text or bytes, got int"):
        nni.load(3)  # type: ignore[arg-type]


SCRIPT = """
import nni
from dataclasses import dataclass

@nni.trace
class Decorated:
    def __init__(self, size):
        self.size = size

class Plain:
    def __init__(self, size):
        self.size = size

@nni.trace
def made(size):
    return Plain(size)

print(nni.dump([Decorated(3), nni.trace(Plain)(4), made(5), Plain(6)]))
"""


def test_objects_of_the_main_module_travel_by_value() -> None:
    written = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=30
    ).stdout

    loaded = nni.load(written)

    assert [one.size for one in loaded] == [3, 4, 5, 6]
    assert [one["__kwargs__"] for one in json.loads(nni.dump(loaded))[:3]] == [
        {"size": 3},
        {"size": 4},
        {"size": 5},
    ]
