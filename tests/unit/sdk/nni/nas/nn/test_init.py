"""The shortcut to the primitives of the selected framework."""

import nni.nas.nn
from nni.nas.nn.pytorch import Cell


def test_names_of_pytorch_can_be_imported() -> None:
    assert nni.nas.nn.Cell is Cell
