"""Forms in which a Lightning module returns its optimizers and schedulers."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR

from nni.nas.oneshot.pytorch.schedules import optimizers_and_schedules

PARAMETERS = [nn.Parameter(torch.zeros(1))]


def test_all_forms_of_optimizers_are_read() -> None:
    optimizer = SGD(PARAMETERS, 0.1)
    scheduler = StepLR(optimizer, 1)
    forms: list[Any] = [
        ([optimizer], [scheduler]),
        {"optimizer": optimizer, "lr_scheduler": scheduler},
        {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "name": "rate"}},
        ({"optimizer": optimizer, "lr_scheduler": scheduler},),
    ]

    for form in forms:
        optimizers, schedules = optimizers_and_schedules(form)
        assert optimizers == [optimizer]
        assert [(one.scheduler, one.interval) for one in schedules] == [(scheduler, "epoch")]
    assert optimizers_and_schedules(optimizer) == ([optimizer], [])
    assert optimizers_and_schedules(None) == ([], [])
    with pytest.raises(ValueError, match="must return optimizers"):
        optimizers_and_schedules(3)
