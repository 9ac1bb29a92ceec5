"""Conformance suite of evaluators; a subclass builds the evaluator under test.

Import it from this module: `nni.testing` itself does not load torch.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.pruning.level_pruner import LevelPruner

_SEED = 0


class EvaluatorConformance(ABC):
    """Tests that every `nni.compression.Evaluator` must pass; subclass it in a module of tests.

    The training must be deterministic after `torch.manual_seed`, at least an epoch long without
    limits, and change no parameter where the loss is 0 times what it was.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import LegacyEvaluator
        >>> class TestMyTrainer(EvaluatorConformance):
        ...     steps_per_epoch = 4
        ...     def make(self):
        ...         def trainer(model, optimizer, criterion):
        ...             for batch in torch.ones(4, 8, 3):
        ...                 optimizer.zero_grad()
        ...                 criterion(model(batch), torch.zeros(8, 2)).backward()
        ...                 optimizer.step()
        ...         model = nn.Sequential(nn.Linear(3, 2))
        ...         optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ...         return model, LegacyEvaluator(
        ...             trainer, optimizer, nn.MSELoss(), torch.ones(8, 3), lambda model: 1.0
        ...         )
        >>> TestMyTrainer().test_each_binding_starts_anew()
    """

    steps_per_epoch: ClassVar[int]
    """Number of optimizer steps in one epoch of the training."""

    @abstractmethod
    def make(self) -> tuple[nn.Module, Evaluator]:
        """Return a new model, which has a `torch.nn.Linear`, and an evaluator of it.

        The suite has set the seed. The evaluator has a dummy input and can evaluate.
        """

    def test_training_changes_the_model(self) -> None:
        """The parameters of the bound model move."""
        model, evaluator = self._bound()
        before = _parameters(model)

        evaluator.train(max_steps=2)

        assert not _equal(before, _parameters(model))

    def test_each_binding_starts_anew(self) -> None:
        """Two bindings from the same parameters end with the same parameters."""
        model, evaluator = self._made()
        start = copy.deepcopy(model.state_dict())
        ends = []
        for _ in range(2):
            model.load_state_dict(start)
            evaluator.bind_model(model)
            torch.manual_seed(_SEED)
            evaluator.train(max_steps=3)
            evaluator.unbind_model()
            ends.append(_parameters(model))

        assert _equal(*ends)

    def test_a_copy_of_the_model_is_trained_alone(self) -> None:
        """A model with the same names can be bound; the first one stays as it is."""
        model, evaluator = self._bound()
        evaluator.train(max_steps=1)
        evaluator.unbind_model()
        other, before = copy.deepcopy(model), _parameters(model)

        evaluator.bind_model(other)
        evaluator.train(max_steps=1)
        evaluator.unbind_model()

        assert _equal(before, _parameters(model))
        assert not _equal(before, _parameters(other))

    def test_steps_are_limited(self) -> None:
        """A training makes exactly `max_steps` steps, within an epoch and beyond it."""
        for max_steps in (1, self.steps_per_epoch + 1):
            assert self._steps(max_steps=max_steps) == max_steps

    def test_epochs_are_limited(self) -> None:
        """A training makes exactly `max_epochs` epochs."""
        assert self._steps(max_epochs=2) == 2 * self.steps_per_epoch

    def test_the_first_limit_ends_a_training(self) -> None:
        """Steps and epochs can be limited at once."""
        assert self._steps(max_steps=1, max_epochs=2) == 1
        assert self._steps(max_steps=3 * self.steps_per_epoch, max_epochs=1) == self.steps_per_epoch

    def test_a_training_without_limits_ends(self) -> None:
        """A fine-tuning takes as long as the code of the user says."""
        assert self._steps() >= self.steps_per_epoch

    def test_tasks_run_around_each_step(self) -> None:
        """Before a step the gradients are complete; after it the parameters have moved."""
        model, evaluator = self._bound()
        log: list[tuple[str, bool]] = []
        seen = {"parameters": _parameters(model)}

        def before() -> None:
            gradients = [one.grad for one in model.parameters() if one.grad is not None]
            log.append(("before", any(bool(one.any()) for one in gradients)))
            seen["parameters"] = _parameters(model)

        def after() -> None:
            log.append(("after", not _equal(seen["parameters"], _parameters(model))))

        evaluator.patch_optimizer_step([before], [after])
        evaluator.train(max_steps=2)

        assert log == [("before", True), ("after", True)] * 2

    def test_a_patched_loss_is_what_is_minimised(self) -> None:
        """A loss of 0 moves nothing, until the patch is removed."""
        model, evaluator = self._bound()
        batches: list[object] = []

        def nothing(loss: Tensor, batch: object) -> Tensor:
            batches.append(batch)
            return loss * 0

        before = _parameters(model)
        evaluator.patch_loss(nothing)
        evaluator.train(max_steps=1)
        unchanged = _equal(before, _parameters(model))
        evaluator.revert_loss()
        evaluator.train(max_steps=1)

        assert unchanged
        assert len(batches) == 1
        assert all(_tensors(batch) for batch in batches)
        assert not _equal(before, _parameters(model))

    def test_several_patches_apply_in_turn(self) -> None:
        """Each patch gets the loss that the one before returned."""
        _, evaluator = self._bound()
        seen: list[float] = []

        def first(loss: Tensor, _batch: object) -> Tensor:
            return loss * 0 + 3

        def second(loss: Tensor, _batch: object) -> Tensor:
            seen.append(loss.item())
            return loss

        evaluator.patch_loss(first)
        evaluator.patch_loss(second)
        evaluator.train(max_steps=1)

        assert seen == [3.0]

    def test_parameters_of_an_algorithm_are_trained(self) -> None:
        """A parameter group that joins the optimizer is trained by the patched loss."""
        _, evaluator = self._bound()
        extra = nn.Parameter(torch.ones(()))

        evaluator.patch_optim_param_group({"params": [extra], "lr": 0.1})
        evaluator.patch_loss(lambda loss, _: loss + extra)
        evaluator.train(max_steps=2)

        assert extra.item() < 1

    def test_unbinding_removes_patches_and_hooks(self) -> None:
        """Nothing of one binding is called in the next."""
        model, evaluator = self._bound()
        calls: list[str] = []

        def patch(loss: Tensor, _batch: object) -> Tensor:
            calls.append("loss")
            return loss

        evaluator.patch_loss(patch)
        evaluator.patch_optimizer_step(
            [lambda: calls.append("before")], [lambda: calls.append("after")]
        )
        linear = next(one for one in model.modules() if isinstance(one, nn.Linear))
        hook = linear.register_forward_hook(lambda *_: calls.append("forward"))
        evaluator.register_hooks([hook])
        evaluator.train(max_steps=1)
        found = set(calls)
        evaluator.unbind_model()
        evaluator.bind_model(model)
        calls.clear()
        evaluator.train(max_steps=1)

        assert found == {"loss", "before", "after", "forward"}
        assert calls == []

    def test_an_error_leaves_the_model_bound(self) -> None:
        """After an error in a training, unbinding makes the evaluator usable again."""
        model, evaluator = self._bound()

        def fail(_loss: Tensor, _batch: object) -> Tensor:
            raise ArithmeticError("the patch fails")

        evaluator.patch_loss(fail)
        error = _error_of(lambda: evaluator.train(max_steps=1))
        evaluator.unbind_model()
        evaluator.bind_model(model)
        before = _parameters(model)
        evaluator.train(max_steps=1)

        assert isinstance(error, ArithmeticError)
        assert not _equal(before, _parameters(model))

    def test_masked_weights_stay_zero(self) -> None:
        """After pruning and training, masked weights are zero, and some others are not."""
        model, evaluator = self._made()
        config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
        pruner = LevelPruner(model, config_list, evaluator)

        _, masks = pruner.compress(max_steps=3)

        for name, wrapper in pruner.get_modules_wrapper().items():
            weight = wrapper.parameter("weight")
            assert weight.any()
            assert not weight[masks[name]["weight"].to(weight.device) == 0].any()

    def test_an_evaluation_repeats_and_changes_nothing(self) -> None:
        """Two evaluations return the same float, and leave the parameters as they were."""
        model, evaluator = self._bound()
        before = _parameters(model)

        metrics = {evaluator.evaluate() for _ in range(2)}

        assert len(metrics) == 1
        assert isinstance(metrics.pop(), float)
        assert _equal(before, _parameters(model))

    def test_the_dummy_input_fits_the_model(self) -> None:
        """The model computes its example input."""
        model, evaluator = self._made()
        inputs = evaluator.get_dummy_input()

        with torch.no_grad():
            output = model(**inputs) if isinstance(inputs, dict) else model(inputs)

        assert output is not None

    def test_only_a_bound_model_is_trained(self) -> None:
        """Binding twice raises, and so do training, patching and evaluation when unbound."""
        model, evaluator = self._bound()

        second = _error_of(lambda: evaluator.bind_model(model))
        for _ in range(2):
            evaluator.unbind_model()
        unbound = [
            _error_of(lambda: evaluator.train(max_steps=1)),
            _error_of(lambda: evaluator.patch_loss(lambda loss, _: loss)),
            _error_of(evaluator.evaluate),
        ]

        assert "call unbind_model() first" in str(second)
        assert all("call bind_model(model) first" in str(error) for error in unbound)

    def _made(self) -> tuple[nn.Module, Evaluator]:
        torch.manual_seed(_SEED)
        return self.make()

    def _bound(self) -> tuple[nn.Module, Evaluator]:
        model, evaluator = self._made()
        evaluator.bind_model(model)
        return model, evaluator

    def _steps(self, max_steps: int | None = None, max_epochs: int | None = None) -> int:
        _, evaluator = self._bound()
        steps: list[int] = []
        evaluator.patch_optimizer_step([], [lambda: steps.append(1)])
        if max_steps is None and max_epochs is None:
            evaluator.finetune()
        else:
            evaluator.train(max_steps, max_epochs)
        return len(steps)


def _error_of(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except (ArithmeticError, RuntimeError) as error:
        return error
    return None


def _parameters(model: nn.Module) -> list[Tensor]:
    return [one.detach().cpu().clone() for one in model.parameters()]


def _equal(one: list[Tensor], other: list[Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))


def _tensors(batch: object) -> bool:
    """Return whether a batch holds a tensor."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, list | tuple):
        return any(_tensors(one) for one in batch)
    return isinstance(batch, Tensor)
