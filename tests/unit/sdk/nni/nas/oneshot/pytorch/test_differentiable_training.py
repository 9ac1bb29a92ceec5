"""Training of a supernet whose architecture is learned by gradient descent."""

from typing import Any

import pytest
import torch

from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights, GumbelWeights
from nni.nas.oneshot.pytorch.differentiable_training import DifferentiableLightningModule
from nni.nas.oneshot.pytorch.profiler import ExpectationProfilerPenalty
from nni.nas.oneshot.pytorch.temperature import LinearTemperature
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import (
    Branches,
    Everything,
    Training,
    as_mixture,
    fit,
    line_data,
)

Made = tuple[DifferentiableLightningModule, ArchitectureWeights]


def loaders() -> dict[str, Any]:
    return {"train_dataloaders": {"train": line_data(), "val": line_data(seed=1)}}


def made(seed: int = 0, weights: ArchitectureWeights | None = None, **options: Any) -> Made:
    torch.manual_seed(seed)
    space = Branches()
    weights = as_mixture(space, weights)
    module = DifferentiableLightningModule(
        Training(space), weights, **{"arc_learning_rate": 0.1, **options}
    )
    return module, weights


def test_weights_and_logits_are_trained_by_their_own_optimizers() -> None:
    module, weights = made()
    before = weights.logits("branch").detach().clone()

    trainer = fit(module, **loaders())

    of_weights = {
        id(one) for group in trainer.optimizers[1].param_groups for one in group["params"]
    }
    assert not torch.equal(weights.logits("branch").detach(), before)
    assert id(weights.logits("branch")) not in of_weights


def test_warm_up_leaves_the_logits() -> None:
    module, weights = made(warmup_epochs=2)
    before = weights.logits("branch").detach().clone()

    fit(module, 2, **loaders())

    assert torch.equal(weights.logits("branch").detach(), before)


def test_second_order_learns_other_logits() -> None:
    learned = {}
    for unrolled in (False, True):
        module, weights = made(unrolled=unrolled)
        fit(module, 2, **loaders())
        learned[unrolled] = weights.logits("branch").detach()

    assert not torch.allclose(learned[False], learned[True], atol=1e-5)
    assert learned[True].argmax() == 1


def test_probabilities_are_logged_by_label_and_value() -> None:
    module, _ = made(log_prob_every_n_step=1)

    trainer = fit(module, **loaders())

    logged = [float(trainer.callback_metrics[f"prob/branch/{one}"]) for one in ("zero", "line")]
    assert sum(logged) == pytest.approx(1)


def test_penalty_outweighs_the_better_branch() -> None:
    class Cost:
        def __init__(self, choice: Any) -> None:
            self.expression = choice.switch_case(choice, {"zero": 1, "line": 100})

        def profile(self, sample: Any) -> float:
            return float(self.expression.freeze(sample))

    module, _ = made()
    choice = module.model.branch.choice
    module.penalty = ExpectationProfilerPenalty(Cost(choice), baseline=10, scale=10)

    trainer = fit(module, 10, **loaders())

    assert module.export() == {"branch": "zero"}
    assert "penalty/loss_final" in trainer.callback_metrics


def test_temperature_follows_the_epochs() -> None:
    weights = GumbelWeights()
    module, _ = made(weights=weights, temperature=LinearTemperature(1.0, 0.5))

    fit(module, 2, **loaders())

    assert weights.temperature == 0.75


def test_export_is_contained_in_the_space() -> None:
    torch.manual_seed(0)
    space = Everything()
    module = DifferentiableLightningModule(Training(space), as_mixture(space))

    assert space.contains(module.export())
    assert space.contains(module.export_sampled())
