"""The shortcut to the one-shot modules of the selected framework."""

import nni.nas.oneshot
import nni.nas.oneshot.pytorch


def test_names_of_pytorch_can_be_imported() -> None:
    name = nni.nas.oneshot.pytorch.__all__[0]

    assert getattr(nni.nas.oneshot, name) is getattr(nni.nas.oneshot.pytorch, name)
