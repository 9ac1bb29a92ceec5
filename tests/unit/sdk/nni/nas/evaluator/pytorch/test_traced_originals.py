from typing import Any

import pytorch_lightning
import torch.utils.data
from pytorch_lightning.callbacks import EarlyStopping

import nni
from nni.common.serializer import is_traceable
from nni.nas.evaluator.pytorch import DataLoader, Trainer
from nni.nas.evaluator.pytorch.traced_originals import (
    is_interrupted,
    is_used,
    new_trainer,
    untraced_loaders,
)
from tests.support.lightning_tasks import QUIET, Points


def test_trainer_and_loader_are_traced_and_instances_of_the_originals() -> None:
    trainer: Any = Trainer(max_epochs=2, **QUIET)
    loader: Any = DataLoader(Points(4), 2)

    assert trainer.trace_kwargs["max_epochs"] == 2
    assert list(loader.trace_kwargs) == ["dataset", "batch_size"]
    assert isinstance(trainer, pytorch_lightning.Trainer)
    assert isinstance(loader, torch.utils.data.DataLoader)
    assert nni.trace(pytorch_lightning.Trainer) is Trainer


def test_a_loader_travels_with_its_data_as_calls() -> None:
    loader = DataLoader(Points(4, seed=3), 2)

    loaded = nni.load(nni.dump(loader))

    assert torch.equal(loaded.dataset.inputs, loader.dataset.inputs)  # type: ignore[attr-defined]
    assert "__nni_obj__" not in nni.dump(loader)


def test_a_new_trainer_has_the_arguments_and_callbacks_of_its_own() -> None:
    stopping = EarlyStopping("val_loss")
    trainer = Trainer(max_epochs=2, callbacks=[stopping], **QUIET)

    made: Any = new_trainer(trainer, [stopping])

    assert (made.max_epochs, is_traceable(made)) == (2, True)
    assert stopping not in made.callbacks
    assert any(isinstance(one, EarlyStopping) for one in made.callbacks)
    assert not is_used(made)
    assert not is_interrupted(made)


def test_untraced_loaders_are_found_in_lists_and_dicts() -> None:
    plain = torch.utils.data.DataLoader(Points(4))

    assert list(untraced_loaders([DataLoader(Points(4)), {"a": [plain]}, None])) == ["DataLoader"]
