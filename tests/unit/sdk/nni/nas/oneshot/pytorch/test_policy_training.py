"""Training of a supernet whose architectures are chosen by a policy."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.mutable import Categorical, CategoricalMultiple, ExpressionConstraint, Numerical
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.nas.oneshot.pytorch.controller import Controller
from nni.nas.oneshot.pytorch.path_sampling import UniformSampler
from nni.nas.oneshot.pytorch.policy_training import (
    EPISODES,
    Decisions,
    PolicyLightningModule,
    decision_values,
    reward_of,
)
from nni.nas.oneshot.pytorch.profiler import SampleProfilerPenalty
from nni.nas.oneshot.pytorch.training import TaggedLoader
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import (
    Branches,
    Everything,
    Training,
    as_path,
    fit,
    line_data,
    quiet_trainer,
)


def made(**options: Any) -> PolicyLightningModule:
    torch.manual_seed(0)
    space = Branches()
    path = as_path(space)
    decisions = Decisions(space)
    policy = Controller(decisions.sizes, learning_rate=0.01)
    return PolicyLightningModule(
        Training(space),
        path,
        UniformSampler(space),
        decisions,
        policy,
        **{"batches_per_update": 4, "reward_metric_name": "score", **options},
    )


def loaders() -> dict[str, Any]:
    return {"train_dataloaders": TaggedLoader({"train": line_data(), "val": line_data(32, 1)})}


def test_policy_prefers_the_better_branch() -> None:
    module = made()

    trainer = fit(module, 8, **loaders())

    assert module.export() == {"branch": "line"}
    assert "reward" in trainer.callback_metrics


def test_warm_up_trains_weights_only() -> None:
    module = made(warmup_epochs=1)
    before = {name: value.clone() for name, value in module.policy.state_dict().items()}

    fit(module, 1, **loaders())

    after = module.policy.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_negative_penalty_outweighs_the_better_branch() -> None:
    class Cost:
        def profile(self, sample: Any) -> float:
            return {"zero": 1.0, "line": 100.0}[sample["branch"]]

    module = made(penalty=SampleProfilerPenalty(Cost(), 10, scale=-10))

    fit(module, 8, **loaders())

    assert module.export() == {"branch": "zero"}


def test_checkpoint_holds_the_optimizer_of_the_policy() -> None:
    first, second = made(), made()
    fit(first, 1, **loaders())
    checkpoint: dict[str, Any] = {}

    first.on_save_checkpoint(checkpoint)
    second.on_load_checkpoint(checkpoint)

    assert second.policy.optimizer.state_dict()["state"].keys() == {*range(9)}


def test_resumed_training_learns_from_the_rewards_before_it(tmp_path: Path) -> None:
    first, second = made(batches_per_update=100), made(batches_per_update=100)
    fit(first, 1, **loaders())
    checkpoint: dict[str, Any] = {}
    first.on_save_checkpoint(checkpoint)
    torch.save(checkpoint, tmp_path / "last.ckpt")

    second.on_load_checkpoint(torch.load(tmp_path / "last.ckpt", weights_only=True))
    restored: dict[str, Any] = {}
    second.on_save_checkpoint(restored)

    count, episodes = restored[EPISODES]
    assert count == len(episodes) > 0
    assert restored[EPISODES] == checkpoint[EPISODES]
    assert second.sampler.draw() == first.sampler.draw()


def test_actions_become_samples_of_the_space() -> None:
    space = Everything()
    as_path(space)
    decisions = Decisions(space)

    sample = decisions.sample([size - 1 for size in decisions.sizes])

    assert sample["depth"] == 3
    assert sample["skip"] == [2]
    assert space.contains(sample)


def test_constraints_are_no_decisions() -> None:
    rule = ExpressionConstraint(Categorical([1], label="a") > 0, label="rule")

    assert decision_values(rule) is None


def test_other_leaves_are_refused() -> None:
    with pytest.raises(ValueError, match="n_chosen=2"):
        decision_values(CategoricalMultiple([0, 1, 2], n_chosen=2, label="skip"))
    with pytest.raises(TypeError, match="choice among values"):
        decision_values(Numerical(0, 1, label="rate"))


@pytest.mark.parametrize(
    ("logged", "name", "expected"),
    [
        ({"a": 1}, None, 1),
        ({"a": 1, "default": 2}, None, 2),
        ({"val_loss": 1, "val_acc": 2}, None, 2),
        ({"a": 1, "b": 2}, "b", 2),
    ],
)
def test_reward_is_the_named_or_the_only_metric(
    logged: dict[str, int], name: str | None, expected: int
) -> None:
    assert reward_of(logged, name) == expected


@pytest.mark.parametrize(
    ("logged", "name"), [({}, None), ({"a": 1, "b": 2}, None), ({"a": 1}, "b")]
)
def test_reward_that_is_not_logged_is_an_error(logged: dict[str, int], name: str | None) -> None:
    with pytest.raises(KeyError, match="reward_metric_name"):
        reward_of(logged, name)


class Normalized(ModelSpace):
    """Two equal branches behind a normalization whose running mean is far from any batch."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(1)
        self.norm.running_mean = torch.full((1,), 100.0)
        self.branch = LayerChoice([nn.Identity(), nn.Identity()], label="branch")

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.branch(self.norm(inputs[:, :1]))
        return output


def policy_module(space: ModelSpace) -> PolicyLightningModule:
    path, decisions = as_path(space), Decisions(space)
    module = PolicyLightningModule(
        Training(space), path, UniformSampler(space), decisions, Controller(decisions.sizes)
    )
    module.setup("fit")
    return module


def test_reward_takes_the_statistics_of_the_batch_and_keeps_the_running_ones() -> None:
    space = Normalized()
    inputs = torch.randn(8, 2)
    targets = nn.functional.batch_norm(inputs[:, :1], None, None, training=True)

    logged = policy_module(space)._measured((inputs, targets), 0)

    assert float(logged["val_loss"]) < 1e-6  # float32 of values around 1
    assert space.norm.running_mean == 100.0
    assert space.norm.training


def test_reward_of_one_example_takes_the_running_statistics() -> None:
    space = Normalized()
    inputs = torch.randn(1, 2)

    logged = policy_module(space)._measured((inputs, inputs[:, :1] - 100), 0)

    assert float(logged["val_loss"]) < 1e-2  # float32 of values around 100, eps of 1e-5 in the root
    assert space.norm.running_mean == 100.0


def test_reward_that_is_no_number_teaches_nothing() -> None:
    class Diverged(Training):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("score", torch.tensor(float("nan")))

    module = made(batches_per_update=1)
    module.training_module = Diverged(module.model)
    before = {name: value.clone() for name, value in module.policy.state_dict().items()}

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quiet_trainer(max_epochs=1).fit(module, **loaders())

    assert any("must be a finite number, got nan" in str(one.message) for one in caught)
    after = module.policy.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_hooks_get_the_batches_of_the_loaders() -> None:
    module = made()

    assert module.training_batches(("train", 1)) == (1,)
    assert module.training_batches(("val", 1)) == ()
    assert module.each_batch(("val", 1), lambda batch: batch + 1) == ("val", 2)
