"""Base of pruners of one's own as NNI 2.x documents it: a method returns the masks of a layer."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from nni.compression.base.compressor import LayerInfo
from nni.compression.base.inspection import module_infos
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.pruner import Masks, Pruner, TargetKey
from nni.compression.config.legacy import is_legacy
from nni.compression.config.selection import select

Entry = Mapping[str, object]
LayerMasks = Mapping[str, Tensor | None]
"""`weight_mask`, and maybe `bias_mask`."""


class LegacyPruner(Pruner):
    """Pruner whose method `calc_mask` returns the masks of each layer.

    The masks are computed by `compress`, and again after each step of the optimizer, if there is
    one. Each wrapper has `config`, its entry of the configuration, and `name`, `type` and `module`.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers.
        config_list: entries of NNI 2.x or 3.0; not changed.
        optimizer: masks are computed after each of its steps; None for `compress` only.

    Attributes:
        optimizer: see above.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pytorch.compressor import Pruner
        >>> class LastRowPruner(Pruner):
        ...     def calc_mask(self, wrapper, **kwargs):
        ...         mask = torch.ones_like(wrapper.module.weight)
        ...         mask[-1] = 0
        ...         return {"weight_mask": mask}
        >>> config_list = [{"op_types": ["Linear"], "sparsity": 0.5}]
        >>> model = LastRowPruner(nn.Sequential(nn.Linear(1, 2)), config_list).compress()
        >>> model[0].weight_mask.flatten()
        tensor([1., 0.])
    """

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Entry] | None,
        optimizer: Optimizer | None = None,
    ) -> None:
        self.optimizer = optimizer
        self._handles: list[RemovableHandle] = []
        super().__init__(model, config_list)
        if optimizer is not None:
            self.patch_optimizer(self.update_mask)

    @abstractmethod
    def calc_mask(self, wrapper: ModuleWrapper, **kwargs: Any) -> LayerMasks | None:  # noqa: ANN401
        """Return a layer's `weight_mask` and maybe `bias_mask`; None to leave its masks.

        Args:
            wrapper: wrapper of the layer, whose parameters are those of `wrapper.module`.
            kwargs: `wrapper_idx`, the place of the wrapper among all.

        Returns:
            `weight_mask` and maybe `bias_mask`, of 0 and 1, of the shapes of the parameters; None
            to leave the masks as they are.
        """

    def validate_config(self, model: nn.Module, config_list: Sequence[Entry]) -> None:
        """Raise if the algorithm cannot use a configuration; the base accepts all.

        Args:
            model: an unwrapped model.
            config_list: entries that are valid for every pruner.
        """

    def update_epoch(self, epoch: int) -> None:
        """Prepare for an epoch; called by the training loop of the user, by default without effect.

        Args:
            epoch: number of the epoch.
        """

    def compress(self) -> nn.Module:  # type: ignore[override]  # NNI 2.x returns the model
        """Wrap the model, compute and set the masks of all layers; return the model.

        Returns:
            The model, wrapped.
        """
        self.wrap_model()
        self.update_mask()
        return self.bound_model

    def update_mask(self) -> None:
        """Compute and apply the masks of all layers."""
        self.update_masks(self.generate_masks())

    def generate_masks(self) -> Masks:
        """Return the masks from `calc_mask`, present ones where it returns none; set none.

        Returns:
            Masks by module and target name; present ones where there are no new ones.
        """
        masks = self.get_masks()
        for place, (name, wrapper) in enumerate(self._wrappers.items()):
            found = self.calc_mask(wrapper, wrapper_idx=place) or {}
            for key, mask in found.items():
                if mask is not None:
                    masks[name][key.removesuffix("_mask")] = mask
        return masks

    def calculate_metrics(self) -> dict[TargetKey, Tensor]:
        """Return {}, no metrics: `calc_mask` returns masks."""
        return {}

    def patch_optimizer(self, *tasks: Callable[[], object]) -> None:
        """Call functions, without gradients, after each step of the optimizer.

        Args:
            tasks: functions without arguments.

        Raises:
            RuntimeError: there is no optimizer.
        """
        self._handles += [
            self._own_optimizer().register_step_post_hook(_hook(task)) for task in tasks
        ]

    def patch_optimizer_before(self, *tasks: Callable[[], object]) -> None:
        """Call functions, without gradients, before each step of the optimizer.

        Args:
            tasks: functions without arguments.

        Raises:
            RuntimeError: there is no optimizer.
        """
        self._handles += [
            self._own_optimizer().register_step_pre_hook(_hook(task)) for task in tasks
        ]

    def select_config(self, layer: LayerInfo) -> Entry | None:
        """Return a copy of the entry that decides about a layer; None if no entry does.

        Args:
            layer: name, module and type of the layer.

        Returns:
            A copy of the entry; None if the layer is not pruned.
        """
        wrapper = self._wrappers.get(layer.name)
        return None if wrapper is None else dict(wrapper.config)

    def get_modules_to_compress(self) -> list[tuple[LayerInfo, Entry]]:  # type: ignore[override]  # as in NNI 2.x
        """Return every layer that is pruned, with its entry of the configuration.

        Returns:
            Pairs in the order of the model.
        """
        return [
            (LayerInfo(name, one.module, type(one.module).__name__), dict(one.config))
            for name, one in self._wrappers.items()
        ]

    def get_modules_wrapper(self) -> list[ModuleWrapper]:  # type: ignore[override]  # as in NNI 2.x
        """Return the wrappers as a list in model order, not by name.

        Returns:
            A list in the order of the model.
        """
        return list(self._wrappers.values())

    def _make_wrappers(
        self, model: nn.Module, config_list: Sequence[Entry]
    ) -> Mapping[str, ModuleWrapper]:
        found = super()._make_wrappers(model, config_list)
        self.validate_config(model, config_list)
        entries = entries_by_name(model, config_list)
        for name, wrapper in found.items():
            wrapper.config = dict(entries[name])  # type: ignore[assignment]  # no module
            wrapper.name = name  # type: ignore[assignment]
            wrapper.type = type(wrapper.module).__name__  # type: ignore[assignment]
        return found

    def _own_optimizer(self) -> Optimizer:
        if self.optimizer is None:
            raise RuntimeError(f"{type(self).__name__} has no optimizer; pass one to it")
        return self.optimizer


def entries_by_name(model: nn.Module, config_list: Sequence[Entry]) -> dict[str, Entry]:
    """Return the entry that decides about each module: in NNI 2.x the last, in 3.0 the first.

    Args:
        model: an unwrapped model.
        config_list: entries of either.

    Examples:
        >>> model = nn.Sequential(nn.Linear(1, 1))
        >>> entries = [{"op_types": ["Linear"], "sparsity": rate} for rate in (0.25, 0.5)]
        >>> entries_by_name(model, entries)["0"]["sparsity"]
        0.5
    """
    modules = module_infos(model)
    entries = list(config_list) if is_legacy(config_list) else list(reversed(config_list))
    return {name: entry for entry in entries for name in select(entry, modules)}


def _hook(task: Callable[[], object]) -> Callable[..., None]:
    def hook(*_args: object, **_kwargs: object) -> None:
        with torch.no_grad():
            task()

    return hook
