"""Conformance suite of pruners; a subclass builds the pruner under test.

Import it from this module: `nni.testing` itself does not load torch.
"""

import copy
import io
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from nni.compression.base.pruner import Masks, Pruner

Entry = dict[str, object]

_SEED = 0


class PrunerConformance(ABC):
    """Tests that every `nni.compression.base.Pruner` must pass; subclass it in a module of tests.

    The model is a small convolutional network for `(n, 3, 8, 8)`; `make` may use another one by
    overriding `make_model` and `make_input`.

    Examples:
        >>> from nni.compression.pruning import L1NormPruner
        >>> class TestMyPruner(PrunerConformance):
        ...     def make(self, model, config_list):
        ...         return L1NormPruner(model, config_list)
        >>> TestMyPruner().test_masks_are_zero_and_one_in_the_shapes_of_their_targets()
    """

    op_types: ClassVar[tuple[str, ...]] = ("Conv2d",)
    """Types of modules that the pruner prunes."""
    ratio: ClassVar[float] = 0.5
    """Sparsity that is asked for."""

    @abstractmethod
    def make(self, model: nn.Module, config_list: list[Entry]) -> Pruner:
        """Return a new pruner of a model, with an evaluator if it needs one.

        Args:
            model: what `make_model` returns.
            config_list: the configuration.
        """

    def make_model(self) -> nn.Module:
        """Return a new model, always with the same parameters."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            return nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1),
                nn.BatchNorm2d(8),
                nn.ReLU(),
                nn.Conv2d(8, 12, 3, bias=False),
                nn.BatchNorm2d(12),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(12 * 36, 10),
            )

    def make_input(self) -> Tensor:
        """Return a batch of inputs, always the same."""
        generator = torch.Generator().manual_seed(_SEED)
        return torch.randn(4, 3, 8, 8, generator=generator)

    def config_list(self) -> list[Entry]:
        """Return the configuration: the ratio for the types that the pruner prunes."""
        return [{"op_types": list(self.op_types), "sparse_ratio": self.ratio}]

    def test_masks_are_zero_and_one_in_the_shapes_of_their_targets(self) -> None:
        """Each parameter that is a target has a mask of its shape, of 0 and 1."""
        pruner, masks = self._compressed()

        assert masks
        for name, wrapper in pruner.get_modules_wrapper().items():
            assert set(masks[name]) == set(wrapper.targets)
            for target, mask in masks[name].items():
                assert mask.shape == wrapper.parameter(target).shape
                assert bool(torch.all((mask == 0) | (mask == 1)))

    def test_the_ratio_is_kept(self) -> None:
        """Each weight, or all of a group together, loses its ratio within one block."""
        pruner, masks = self._compressed()

        lost: dict[object, list[tuple[float, int, float]]] = {}
        for (name, target), blocks in pruner.weight_blocks():
            group = pruner.get_modules_wrapper()[name].targets[target].global_group_id
            mask = masks[name][target]
            entry = (float((mask == 0).sum()), mask.numel(), float(blocks.shape[-1]))
            lost.setdefault((name, target) if group is None else group, []).append(entry)
        for members in lost.values():
            wanted = self.ratio * sum(number for _, number, _ in members)
            found = sum(zeros for zeros, _, _ in members)
            assert abs(found - wanted) <= max(block for _, _, block in members)

    def test_the_same_model_and_seed_give_the_same_masks(self) -> None:
        """Two runs with the same seed agree in every element."""
        one, other = self._compressed()[1], self._compressed()[1]

        assert _equal(one, other)

    def test_wrapping_and_unwrapping_leaves_the_model(self) -> None:
        """Modules, parameters and buffers are the same objects, bit for bit."""
        model = self.make_model()
        before = copy.deepcopy(model.state_dict())
        modules, parameters = list(model.named_modules()), list(model.parameters())

        pruner = self.make(model, self.config_list())
        pruner.wrap_model()
        pruner.unwrap_model()

        assert list(model.named_modules()) == modules
        assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
        after = model.state_dict()
        assert list(after) == list(before)
        assert all(torch.equal(after[key], value) for key, value in before.items())

    def test_the_configuration_is_not_changed(self) -> None:
        """The list of the caller stays as it was."""
        config_list = self.config_list()

        self.make(self.make_model(), config_list)

        assert config_list == self.config_list()

    def test_masks_survive_saving_and_loading(self) -> None:
        """The state dict of the wrapped model restores the masks in a new pruner."""
        pruner, masks = self._compressed()
        file = io.BytesIO()
        torch.save(pruner.bound_model.state_dict(), file)
        file.seek(0)

        other = self.make(self.make_model(), self.config_list())
        other.bound_model.load_state_dict(torch.load(file, weights_only=True))

        assert _equal(other.get_masks(), masks)

    def test_no_gradient_passes_masked_weights(self) -> None:
        """The gradient of a masked element is zero, and of some other element it is not."""
        pruner, masks = self._compressed()
        pruner.bound_model.zero_grad()

        pruner.bound_model(self.make_input()).square().sum().backward()

        for name, wrapper in pruner.get_modules_wrapper().items():
            for target, mask in masks[name].items():
                gradient = wrapper.parameter(target).grad
                assert gradient is not None
                assert not gradient[mask == 0].any()
        assert any(
            one.grad is not None and one.grad.any() for one in pruner.bound_model.parameters()
        )

    def test_masked_elements_do_not_change_the_output(self) -> None:
        """The wrapped model computes the unwrapped one with zeros in place of masked elements."""
        pruner, masks = self._compressed()
        pruner.bound_model.eval()
        with torch.no_grad():
            output = pruner.bound_model(self.make_input())
            plain = pruner.unwrap_model()
            for name, targets in masks.items():
                for target, mask in targets.items():
                    plain.get_submodule(name).get_parameter(target).mul_(mask)

            assert torch.equal(plain(self.make_input()), output)

    def test_a_second_round_masks_no_less(self) -> None:
        """What is masked stays masked when masks are generated again."""
        pruner, masks = self._compressed()

        pruner.collect_data()
        again = pruner.generate_masks()

        for name, targets in masks.items():
            for target, mask in targets.items():
                assert not (again[name][target].bool() & ~mask.bool()).any()

    def _compressed(self) -> tuple[Pruner, Masks]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            pruner = self.make(self.make_model(), self.config_list())
            return pruner, pruner.compress()[1]


def _equal(one: Masks, other: Masks) -> bool:
    return one.keys() == other.keys() and all(
        targets.keys() == other[name].keys()
        and all(torch.equal(mask, other[name][target]) for target, mask in targets.items())
        for name, targets in one.items()
    )
