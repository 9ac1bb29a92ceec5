"""Base of all compressors: selects modules, wraps them and restores them."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.inspection import module_infos
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.parallel import is_distributed, plain_model
from nni.compression.config.plan import pruning_plan
from nni.compression.evaluators.evaluator import Evaluator

Entry = Mapping[str, object]


class LayerInfo(NamedTuple):
    """Module of a model with its name and type."""

    name: str
    """Dotted name."""
    module: nn.Module
    """The unwrapped module."""
    type: str
    """Name of its class."""


class Compressor:
    """Model with some of its modules wrapped.

    Construction checks the configuration and wraps the selected modules in place. The parameters
    of the model stay the same objects, so that an optimizer of the model goes on working. Without
    model and configuration, `reset` must be called first; a `PruningScheduler` does so.

    Args:
        model: an unwrapped model; its modules are replaced by wrappers. None if `reset` is called.
        config_list: entries of NNI 3.0 or 2.x; not changed. None if `reset` is called.
        evaluator: what trains and evaluates the model; None if the algorithm needs neither.

    Attributes:
        config_list: copies of the entries.
        evaluator: see above.
        is_wrapped: whether the wrappers are in the model now.
        is_distributed: whether the model was given in `DistributedDataParallel`.

    Raises:
        ConfigListError: the configuration breaks a rule.
        TypeError: `model` is no module, or holds wrappers already.

    Examples:
        >>> from torch import nn
        >>> from nni.compression.base import Compressor
        >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        >>> compressor = Compressor(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
        >>> list(compressor.get_modules_wrapper())
        ['0']
        >>> compressor.unwrap_model() is model
        True
    """

    per_entry = False
    """Whether the targets of an entry share its ratio, unless they name a group."""

    def __init__(
        self,
        model: nn.Module | None,
        config_list: Sequence[Entry] | None,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.config_list: list[dict[str, object]] = []
        self.evaluator = evaluator
        self.is_wrapped = False
        self.is_distributed = False
        self._model: nn.Module | None = None
        self._wrappers: OrderedDict[str, ModuleWrapper] = OrderedDict()
        self._collectors: dict[int, list[RemovableHandle]] = {}
        self._collector_numbers = count()
        if model is not None or config_list is not None:
            self.reset(model, config_list)

    @property
    def bound_model(self) -> nn.Module:
        """Return the model.

        Returns:
            What the constructor or the last `reset` got.

        Raises:
            RuntimeError: there is none.
        """
        if self._model is None:
            raise RuntimeError(f"{type(self).__name__} has no model; call reset(model, ...) first")
        return self._model

    def reset(self, model: nn.Module | None, config_list: Sequence[Entry] | None) -> None:
        """Restore the model of before, and wrap the selected modules of another one.

        Args:
            model: an unwrapped model; its modules are replaced by wrappers.
            config_list: entries of NNI 3.0 or 2.x; not changed.

        Raises:
            ConfigListError: the configuration breaks a rule.
            TypeError: `model` is no module, or holds wrappers already.

        Examples:
            >>> from torch import nn
            >>> from nni.compression.pruning import L1NormPruner
            >>> pruner = L1NormPruner(None, None)
            >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
            >>> pruner.reset(nn.Sequential(nn.Linear(2, 2)), config_list)
            >>> pruner.compress()[1]["0"]["bias"].sum()
            tensor(1.)
        """
        if self._model is not None:
            self.unwrap_model()
        if not isinstance(model, nn.Module):
            raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
        self.is_distributed = is_distributed(model)
        model = plain_model(model)
        if any(isinstance(module, ModuleWrapper) for module in model.modules()):
            raise TypeError("model holds wrappers of another compressor; call its unwrap_model()")
        if config_list is None:
            raise TypeError("config_list must be a list of dicts, got None")
        self._wrappers = OrderedDict(self._make_wrappers(model, config_list))
        self._collectors = {}
        self._model = model
        self.config_list = [dict(entry) for entry in config_list]
        self.wrap_model()

    def _make_wrappers(
        self, model: nn.Module, config_list: Sequence[Entry]
    ) -> Mapping[str, ModuleWrapper]:
        """Return new wrappers of the selected modules by name; the model is not changed yet."""
        plan = pruning_plan(config_list, module_infos(model), per_entry=self.per_entry)
        return {
            name: ModuleWrapper(model.get_submodule(name), name, targets)
            for name, targets in plan.items()
        }

    def _all_wrappers(self) -> Iterable[ModuleWrapper]:
        """Return all wrappers that stand in the wrapped model."""
        return self._wrappers.values()

    def wrap_model(self) -> nn.Module:
        """Put the wrappers into the model; without effect if they are.

        Returns:
            The model.

        Examples:
            >>> from torch import nn
            >>> from nni.compression.base import Compressor
            >>> model = nn.Sequential(nn.Linear(2, 2))
            >>> compressor = Compressor(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
            >>> [name for name, _ in compressor.wrap_model().named_modules()]
            ['', '0', '0.module']
        """
        if not self.is_wrapped:
            for wrapper in self._all_wrappers():
                wrapper.enter_model()
            self._replace({id(one.module): one for one in self._all_wrappers()})
            self.is_wrapped = True
        return self.bound_model

    def unwrap_model(self) -> nn.Module:
        """Put the original modules back into the model; without effect if they are there.

        Returns:
            The model, with the modules and parameters that it had before.
        """
        if self.is_wrapped:
            for wrapper in self._all_wrappers():
                wrapper.leave_model()
            self._replace({id(one): one.module for one in self._all_wrappers()})
            self.is_wrapped = False
        return self.bound_model

    def _unwrap_model(self) -> nn.Module:
        """Restore the original modules: the documented name of NNI 2.x for `unwrap_model`."""
        return self.unwrap_model()

    def get_modules_wrapper(self) -> dict[str, ModuleWrapper]:
        """Return the wrappers by the dotted name of their module.

        Returns:
            A new dict, in the order of the model.
        """
        return dict(self._wrappers)

    def get_modules_to_compress(self) -> list[LayerInfo]:
        """Return name, module and type of every module that is compressed.

        Returns:
            A list in the order of the model.
        """
        return [
            LayerInfo(name, wrapper.module, type(wrapper.module).__name__)
            for name, wrapper in self._wrappers.items()
        ]

    def set_wrappers_attribute(self, name: str, value: object) -> None:
        """Give every wrapper an attribute that an algorithm of one's own keeps there.

        Args:
            name: name of the attribute.
            value: a tensor becomes a buffer, each wrapper's own, and stands in the state dict;
                anything else is a plain attribute.

        Examples:
            >>> import torch
            >>> from torch import nn
            >>> from nni.compression.base import Compressor
            >>> model = nn.Sequential(nn.Linear(1, 1))
            >>> compressor = Compressor(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
            >>> compressor.set_wrappers_attribute("steps", torch.zeros(()))
            >>> model.state_dict()["0.steps"]
            tensor(0.)
        """
        for wrapper in self._wrappers.values():
            if isinstance(value, Tensor):
                wrapper.register_buffer(name, value.detach().clone())
            else:
                setattr(wrapper, name, value)

    def add_activation_collector(
        self, collector: Callable[[ModuleWrapper, Any, Any], object]
    ) -> int:
        """Call a function after each forward pass of each wrapper.

        Args:
            collector: `(wrapper, inputs, output)`; a value that it returns replaces the output.

        Returns:
            A number for `remove_activation_collector`.

        Examples:
            >>> import torch
            >>> from torch import nn
            >>> from nni.compression.base import Compressor
            >>> model = nn.Sequential(nn.Linear(1, 2))
            >>> compressor = Compressor(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
            >>> def show(wrapper, inputs, output):
            ...     print(wrapper.module_name, tuple(output.shape))
            >>> collector = compressor.add_activation_collector(show)
            >>> _ = model(torch.zeros(3, 1))
            0 (3, 2)
            >>> compressor.remove_activation_collector(collector)
        """
        number = next(self._collector_numbers)
        self._collectors[number] = [
            wrapper.register_forward_hook(collector) for wrapper in self._wrappers.values()
        ]
        return number

    def remove_activation_collector(self, number: int) -> None:
        """Call a function no more after forward passes.

        Args:
            number: what `add_activation_collector` returned.

        Raises:
            ValueError: no collector has this number.
        """
        if number not in self._collectors:
            known = sorted(self._collectors)
            raise ValueError(f"no activation collector has the number {number!r}, only {known}")
        for handle in self._collectors.pop(number):
            handle.remove()

    def _replace(self, by_id: Mapping[int, nn.Module]) -> None:
        """Replace modules wherever the model holds them: one may have several names."""
        for owner in list(self.bound_model.modules()):
            if isinstance(owner, ModuleWrapper):
                continue  # it holds the module that it wraps
            for own, module in owner._modules.items():  # noqa: SLF001 - setattr rejects numbers
                if id(module) in by_id:
                    owner._modules[own] = by_id[id(module)]  # noqa: SLF001
