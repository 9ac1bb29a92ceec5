from pathlib import Path

import torch

from nni.common.serializer.pickles import as_text, from_text, load_torch_file, pickled, unpickled


def test_a_local_function_survives() -> None:
    factor = 3

    assert unpickled(pickled(lambda number: number * factor))(2) == 6


def test_a_pickle_survives_as_text() -> None:
    assert from_text(as_text(pickled({"a": (1, 2)}))) == {"a": (1, 2)}


def test_a_file_of_torch_may_hold_any_object(tmp_path: Path) -> None:
    torch.save({"path": tmp_path}, tmp_path / "one.torch")

    assert load_torch_file(tmp_path / "one.torch") == {"path": tmp_path}
