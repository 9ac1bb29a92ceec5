"""Contract of one-shot trainers."""

import pytest

from nni.retiarii.oneshot import BaseOneShotTrainer


def test_trainer_needs_both_methods() -> None:
    class Trainer(BaseOneShotTrainer):
        def fit(self) -> None: ...

    with pytest.raises(TypeError, match=r"abstract method .?export"):
        Trainer()  # type: ignore[abstract]  # it is the mistake
