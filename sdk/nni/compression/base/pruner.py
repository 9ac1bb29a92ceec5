"""Base of all pruners: metrics of targets become masks."""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.compressor import Compressor
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.fusion import train_together
from nni.compression.base.masked_state import export_masked
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.target_space import is_parameter
from nni.compression.config.settings import ConfigListError, Granularity, PruningSettings
from nni.compression.masking.allocation import Scores, allocate
from nni.compression.masking.granularity import block_sizes, expanded, grid, to_blocks

Masks = dict[str, dict[str, Tensor]]
"""Masks of 0 and 1 by module name and target name."""

_logger = logging.getLogger(__name__)

_SCALED: Final = ("sparse_ratio", "sparse_threshold", "max_sparse_ratio", "min_sparse_ratio")

TargetKey = tuple[str, str]
"""Module name and target name."""


class Pruner(Compressor):
    """Compressor that masks the least important parts of its targets.

    A pruner of one's own implements `calculate_metrics`, and maybe `collect_data`.
    `nni.testing.pruners.PrunerConformance` has the tests that it must pass.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers. None if `reset` is called.
        config_list: entries of NNI 3.0 or 2.x; not changed. None if `reset` is called.
        evaluator: what trains the model; None if the algorithm needs no data.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.base import Pruner
        >>> class LastFirst(Pruner):
        ...     def calculate_metrics(self):
        ...         return {
        ...             key: -torch.arange(blocks.shape[:-1].numel()).reshape(blocks.shape[:-1])
        ...             for key, blocks in self.weight_blocks()
        ...         }
        >>> model = nn.Sequential(nn.Linear(1, 4, bias=False))
        >>> pruner = LastFirst(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
        >>> model, masks = pruner.compress()
        >>> masks["0"]["weight"].flatten()
        tensor([1., 1., 0., 0.])
    """

    default_granularity: Granularity = "default"
    """What the algorithm masks as one, where the configuration does not say it."""
    op_types: frozenset[str] | None = None
    """Types of modules that the algorithm can prune; None for all with a weight."""
    _has_masks = False
    ratio_factor = 1.0
    """Part of all ratios and thresholds that the next masks reach, in (0, 1]; set by schedules."""

    def reset(  # noqa: D102 - see the base
        self, model: nn.Module | None, config_list: Sequence[Mapping[str, object]] | None
    ) -> None:
        super().reset(model, config_list)
        self._has_masks = False
        try:
            self._check_targets()
        except ValueError:
            self.unwrap_model()  # a refused model is left as it was
            raise

    @abstractmethod
    def calculate_metrics(self) -> dict[TargetKey, Tensor]:
        """Return each block's metric by target with an own mask; smallest are masked first.

        Returns:
            By module and target name, one value for each block, in the shape of the grid that
            `weight_blocks` shows; the smallest are masked first.
        """

    def collect_data(self) -> None:
        """Run what `calculate_metrics` needs, such as some training steps; by default nothing."""

    def observe(self) -> list[RemovableHandle]:
        """Forget earlier observations, register hooks and return them; default: no hooks.

        A schedule calls it instead of `collect_data`, while it trains the model itself.

        Returns:
            Hooks, which the caller removes.
        """
        return []

    def patch(self, evaluator: Evaluator) -> None:
        """Change the training while the model is observed; by default do nothing.

        Args:
            evaluator: has the model.
        """

    def generate_masks(self) -> Masks:
        """Return the masks that the algorithm chooses; those of the model stay as they are.

        Blocks that are masked already are chosen first. The same model, data and seed give the
        same masks.

        Returns:
            Masks of all parameters that are targets, of their shapes, by module and target name.
        """
        metrics = self.calculate_metrics()
        scores = {key: self._scores(key, metric) for key, metric in metrics.items()}
        kept = self._allocate(scores)
        masks: Masks = {name: {} for name in self._wrappers}
        for (name, target), reduced in kept.items():
            parameter = self._wrappers[name].parameter(target)
            sizes = self._block_sizes(name, target)
            masks[name][target] = expanded(reduced, sizes).to(parameter)
        self._align(masks)
        return masks

    def update_masks(self, masks: Mapping[str, Mapping[str, Tensor | None]]) -> None:
        """Replace the given masks in the wrappers; the others stay; raise for unknown modules.

        Args:
            masks: masks by module and target name; None and targets that are missing change
                nothing.

        Raises:
            KeyError: no wrapper, or no target, has this name.
            ValueError: a mask has another shape than its parameter, or other values than 0 and 1.

        Examples:
            >>> import torch
            >>> from torch import nn
            >>> from nni.compression.pruning import LevelPruner
            >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
            >>> pruner = LevelPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
            >>> pruner.update_masks({"0": {"weight": torch.tensor([[0.0, 1.0]])}})
            >>> pruner.get_masks()
            {'0': {'weight': tensor([[0., 1.]])}}
        """
        self._has_masks = True
        for name, targets in masks.items():
            if name not in self._wrappers:
                raise KeyError(f"no wrapped module is named {name!r}")
            for target, mask in targets.items():
                if mask is not None:
                    self._wrappers[name].set_mask(target, mask)

    def load_masks(self, masks: Mapping[str, Mapping[str, Tensor | None]] | str | Path) -> None:
        """Replace masks by given ones, or by those of a file.

        Args:
            masks: masks as in `update_masks`, or the path of a file from `export_model`, of which
                only tensors are read.

        Raises:
            KeyError: as `update_masks`.
            ValueError: as `update_masks`.
        """
        if isinstance(masks, str | Path):
            loaded: Masks = torch.load(masks, map_location="cpu", weights_only=True)
            self.update_masks(loaded)
        else:
            self.update_masks(masks)

    def get_masks(self) -> Masks:
        """Return copies of the masks in the wrappers.

        Returns:
            Masks by module and target name; inputs and outputs without one are left out.
        """
        return {
            name: {
                target: mask.detach().clone()
                for target in wrapper.targets
                if (mask := wrapper.mask(target)) is not None
            }
            for name, wrapper in self._wrappers.items()
        }

    def compress(
        self, max_steps: int | None = None, max_epochs: int | None = None
    ) -> tuple[nn.Module, Masks]:
        """Collect data, set new masks, fine-tune if limits are given; return model and masks.

        Args:
            max_steps: optimizer steps of fine-tuning with the masks afterwards.
            max_epochs: epochs of fine-tuning with the masks afterwards; none if both are None.

        Returns:
            The model, wrapped, and the masks.

        Raises:
            ValueError: fine-tuning is asked for without an evaluator.

        Examples:
            >>> from torch import nn
            >>> from nni.compression.pruning import L1NormPruner
            >>> model = nn.Sequential(nn.Conv2d(1, 20, 5))
            >>> pruner = L1NormPruner(model, [{"op_types": ["Conv2d"], "sparse_ratio": 0.5}])
            >>> model, masks = pruner.compress()
            >>> int(masks["0"]["bias"].sum())
            10
        """
        tuning = self._check_limits(max_steps, max_epochs)
        self.wrap_model()
        self.collect_data()
        self.update_masks(self.generate_masks())
        if tuning and self.evaluator is not None:
            train_together(self.members(), self.evaluator, self.bound_model, max_steps, max_epochs)
        return self.bound_model, self.get_masks()

    def prepare_training(self) -> None:
        """Generate masks unless there are some; a schedule does so during the training."""
        if not self._has_masks:
            self.compress()

    def leave_training(self) -> None:
        """Set masked values to zero, which the momentum of an optimizer may have changed."""
        for wrapper in self._wrappers.values():
            wrapper.clear_masked()

    def export_model(
        self,
        model_path: str | Path,
        mask_path: str | Path | None = None,
        onnx_path: str | Path | None = None,
        input_shape: Sequence[int] | None = None,
        device: torch.device | str | None = None,
        dummy_input: object = None,
        opset_version: int | None = None,
    ) -> None:
        """Write the unwrapped model's masked state dict; masks and ONNX if paths are given.

        The files are written by `torch.save` and hold tensors only.

        Args:
            model_path: file of the state dict; its keys are those of the original model.
            mask_path: file of the masks, which `ModelSpeedup` and `load_masks` read; None for no
                file.
            onnx_path: file of the unwrapped model in ONNX, with masked values zero; None for no
                file.
            input_shape: shape of its input, if there is no `dummy_input`.
            device: device of the model, for `input_shape`; None for the CPU.
            dummy_input: inputs of the model: a tensor, a list or tuple, or a dict by name.
            opset_version: version of the operators of ONNX; None for the default of torch.

        Raises:
            ValueError: `onnx_path` is given without inputs or their shape; nothing is written then.
            ImportError: a package for `onnx_path` is missing; nothing is written then.
        """
        shape = (input_shape, device, dummy_input, opset_version)
        with self._unwrapped() as model:
            export_masked(model, self.get_masks(), model_path, mask_path, onnx_path, *shape)

    def load_model_state_dict(self, model_state: Mapping[str, Tensor]) -> None:
        """Load the state dict of an unwrapped model; masks stay as they are.

        Args:
            model_state: tensors by the names of the original model.

        Raises:
            RuntimeError: a name or a shape is another one.

        Examples:
            >>> from torch import nn
            >>> from nni.compression.pruning import LevelPruner
            >>> model = nn.Sequential(nn.Linear(2, 1))
            >>> pruner = LevelPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
            >>> pruner.load_model_state_dict(nn.Sequential(nn.Linear(2, 1)).state_dict())
        """
        with self._unwrapped() as model:
            model.load_state_dict(model_state)

    def get_pruned_weights(self, dim: int = 0) -> dict[str, tuple[int, int]]:
        """Return (kept, all) slices of each weight along a dimension, by module; log them.

        Args:
            dim: dimension of the slices; 0 for output channels.

        Returns:
            Slices with a mask that is not zero, and all slices, by module name.
        """
        found = {}
        for name, wrapper in self._wrappers.items():
            mask = wrapper.mask("weight") if "weight" in wrapper.targets else None
            if mask is not None:
                slices = mask.transpose(0, dim).flatten(1) if mask.dim() > 1 else mask[:, None]
                found[name] = int(slices.any(1).sum()), slices.shape[0]
                _logger.info("%s: %d of %d slices of dimension %d stay", name, *found[name], dim)
        return found

    show_pruned_weights = get_pruned_weights
    """The name in NNI 2.x."""

    def weight_blocks(self) -> Iterable[tuple[TargetKey, Tensor]]:
        """Yield key and blocks of every parameter that gets a mask of its own.

        Yields:
            Module and target name, and `(*grid, elements)` of the parameter, detached.
        """
        for name, target in self.own_targets():
            parameter = self._wrappers[name].parameter(target).detach()
            yield (name, target), to_blocks(parameter, self._block_sizes(name, target))

    def own_targets(self) -> list[TargetKey]:
        """Return module and target name of every target that gets a mask of its own."""
        return [
            (name, target)
            for name, wrapper in self._wrappers.items()
            for target, settings in wrapper.targets.items()
            if settings.align is None
        ]

    @contextmanager
    def _unwrapped(self) -> Iterator[nn.Module]:
        """Yield the model with its original modules; wrap it again if it was."""
        was_wrapped = self.is_wrapped
        self.unwrap_model()
        try:
            yield self.bound_model
        finally:
            if was_wrapped:
                self.wrap_model()

    def _check_limits(self, max_steps: int | None, max_epochs: int | None) -> bool:
        """Return whether fine-tuning is requested; raise ValueError if nothing can do it."""
        tuning = max_steps is not None or max_epochs is not None
        if tuning and self.evaluator is None:
            raise ValueError("max_steps and max_epochs need an evaluator; pass one to the pruner")
        return tuning

    def _check_targets(self) -> None:
        for name, wrapper in self._wrappers.items():
            kind = type(wrapper.module).__name__
            if self.op_types is not None and kind not in self.op_types:
                raise ConfigListError(
                    "config_list",
                    f"selects {name}, a {kind}; {type(self).__name__} prunes only "
                    f"{', '.join(sorted(self.op_types))}: exclude it, or choose another pruner",
                )
            for target in wrapper.targets:
                if not is_parameter(target):
                    raise ConfigListError(
                        "config_list",
                        f"has the target {target} of {name}; {type(self).__name__} masks "
                        "parameters only: set such a mask by update_masks",
                    )
        for name, target in self.own_targets():
            self._block_sizes(name, target)

    def _block_sizes(self, name: str, target: str) -> tuple[int, ...]:
        wrapper = self._wrappers[name]
        chosen = wrapper.targets[target].granularity
        shape = wrapper.parameter(target).shape
        if chosen == "default":
            chosen = self.default_granularity
        if len(shape) == 1 and isinstance(chosen, str):
            return (1,)  # a vector has one value for each channel
        try:
            return block_sizes(chosen, shape, transposed=_is_transposed(wrapper))
        except ValueError as error:
            raise ConfigListError(f"config_list target {target} of {name}:", str(error)) from error

    def _scores(self, key: TargetKey, metric: Tensor) -> Scores:
        name, target = key
        wrapper = self._wrappers[name]
        mask = wrapper.mask(target)
        assert mask is not None  # parameters have a mask from the start
        sizes = self._block_sizes(name, target)
        if tuple(metric.shape) != grid(mask.shape, sizes):
            raise ValueError(
                f"the metric of {name}.{target} must have shape {grid(mask.shape, sizes)}, got "
                f"{tuple(metric.shape)}"
            )
        kept = to_blocks(mask, sizes).any(-1)
        metric = metric.detach() if metric.is_floating_point() else metric.double()
        return Scores(metric, kept, mask.numel(), self._settings(wrapper.targets[target]))

    def _allocate(self, scores: Mapping[TargetKey, Scores]) -> dict[TargetKey, Tensor]:
        """Return which blocks stay, by target."""
        return allocate(scores)

    def _settings(self, settings: PruningSettings) -> PruningSettings:
        """Return settings with ratios and thresholds multiplied by `ratio_factor`."""
        if self.ratio_factor == 1:
            return settings
        scaled = {
            name: value * self.ratio_factor
            for name in _SCALED
            if (value := getattr(settings, name)) is not None
        }
        return replace(settings, **scaled)

    def _align(self, masks: Masks) -> None:
        """Add, in place, the masks of targets that take them over; raise if a source has none."""
        for name, wrapper in self._wrappers.items():
            for target, settings in wrapper.targets.items():
                align = settings.align
                if align is None:
                    continue
                source = align.module_name or name
                if align.target_name not in masks.get(source, {}):
                    raise ConfigListError(
                        f"config_list target {target} of {name}:",
                        f"is aligned with {align.target_name} of {source}, which is no target",
                    )
                masks[name][target] = self._aligned(
                    masks[source][align.target_name],
                    self._block_sizes(source, align.target_name),
                    align.dims,
                    wrapper.parameter(target),
                )

    @staticmethod
    def _aligned(
        mask: Tensor, sizes: tuple[int, ...], dims: tuple[int, ...], parameter: nn.Parameter
    ) -> Tensor:
        """Derive a parameter's mask from another parameter's; ones if that has finer blocks."""
        kept_dims = {dim % mask.dim() for dim in dims}
        others = [dim for dim in range(mask.dim()) if dim not in kept_dims]
        if any(sizes[dim] != mask.shape[dim] for dim in others):
            return torch.ones_like(parameter, requires_grad=False)
        reduced = mask.amax(others) if others else mask
        if reduced.numel() < parameter.numel() and parameter.numel() % reduced.numel() == 0:
            # Groups of a transposed convolution: the weight has the channels of one group.
            reduced = reduced.repeat(parameter.numel() // reduced.numel())
        return reduced.reshape(parameter.shape).to(parameter)


def _is_transposed(wrapper: ModuleWrapper) -> bool:
    return type(wrapper.module).__name__.startswith("ConvTranspose")
