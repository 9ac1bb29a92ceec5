"""Base of all compressors: selects modules, wraps them and restores them."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, Self

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from nni.compression.base.evaluator import Evaluator
from nni.compression.base.fusion import TrainingMember, fused_arguments
from nni.compression.base.inspection import module_infos
from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.base.parallel import is_distributed, plain_model
from nni.compression.base.wrapper_set import WrapperSet
from nni.compression.config.plan import pruning_plan
from nni.compression.config.settings import ConfigListError

Entry = Mapping[str, object]


class LayerInfo(NamedTuple):
    """Dotted name, module and type name of a module that is compressed."""

    name: str
    """Dotted name."""
    module: nn.Module
    """The unwrapped module."""
    type: str
    """Name of its class."""


class Compressor(TrainingMember):
    """Base of compressors, which wrap the selected modules of a model in place.

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
        self.is_distributed = False
        self._model: nn.Module | None = None
        self._wrapper_set: WrapperSet | None = None
        self._wrappers: OrderedDict[str, ModuleWrapper] = OrderedDict()
        self._collectors: dict[int, list[RemovableHandle]] = {}
        self._collector_numbers = count()
        if model is not None or config_list is not None:
            self.reset(model, config_list)

    @classmethod
    def from_compressor(
        cls,
        compressor: TrainingMember,
        new_config_list: Sequence[Entry],
        *args: Any,  # noqa: ANN401 - those of the constructor
        **kwargs: Any,  # noqa: ANN401
    ) -> Self:
        """Make a compressor of another one's model, sharing its wrappers and its training.

        Both share the wrappers of the model: `wrap_model` and `unwrap_model` of one are those of
        all. `compress` of the last one trains once, with all of them; a pruner without a schedule
        makes its masks before that, unless it has some.

        Args:
            compressor: a pruner, quantizer, schedule or distiller.
            new_config_list: entries of the new compressor; not changed.
            args: arguments of the constructor after model, configuration and evaluator.
            kwargs: named arguments of the constructor; `evaluator` is that of `compressor` if left
                out.

        Returns:
            The new compressor, whose wrappers are in the model.

        Raises:
            ConfigListError: the configuration breaks a rule, or selects modules that a compressor
                of the same kind has; the model is as before.
            TypeError: the constructor has no such argument.

        Examples:
            >>> from torch import nn
            >>> from nni.compression.pruning import L1NormPruner
            >>> from nni.compression.quantization import QATQuantizer
            >>> model = nn.Sequential(nn.Linear(2, 2))
            >>> pruner = L1NormPruner(model, [{"op_types": ["Linear"], "sparse_ratio": 0.5}])
            >>> _, masks = pruner.compress()
            >>> config_list = [{"op_types": ["Linear"], "target_names": ["weight"]}]
            >>> quantizer = QATQuantizer.from_compressor(pruner, config_list)
            >>> quantizer.unwrap_model() is model
            True
        """
        wrappers = compressor.shared_wrappers
        arguments = fused_arguments(cls, compressor.evaluator, args, kwargs)
        if wrappers is not None:
            wrappers.leave()
        try:
            made = cls(compressor.bound_model, new_config_list, **arguments)
            if wrappers is not None:
                made._join(wrappers)
        finally:
            if wrappers is not None:
                wrappers.enter()
        made._earlier = compressor
        made.is_distributed = isinstance(compressor, Compressor) and compressor.is_distributed
        return made

    @property
    def is_wrapped(self) -> bool:
        """Return whether the wrappers are in the model now.

        Returns:
            True after `wrap_model`, and after the construction.
        """
        return self._wrapper_set is not None and self._wrapper_set.is_wrapped

    @property
    def shared_wrappers(self) -> WrapperSet | None:
        """Return the set of the model's wrappers, fused compressors' included; None without model.

        Returns:
            The set; None without a model.
        """
        return self._wrapper_set

    @property
    def bound_model(self) -> nn.Module:
        """Return the model; raise RuntimeError if there is none.

        Returns:
            What the constructor or the last `reset` got.

        Raises:
            RuntimeError: there is none.
        """
        if self._model is None:
            raise RuntimeError(f"{type(self).__name__} has no model; call reset(model, ...) first")
        return self._model

    def reset(self, model: nn.Module | None, config_list: Sequence[Entry] | None) -> None:
        """Unwrap the former model; wrap the selected modules of another one in place.

        Args:
            model: an unwrapped model; its modules are replaced by wrappers.
            config_list: entries of NNI 3.0 or 2.x; not changed.

        Raises:
            ConfigListError: the configuration breaks a rule.
            TypeError: `model` is no module, or holds wrappers already.
            RuntimeError: the compressor is fused with another one.

        Examples:
            >>> from torch import nn
            >>> from nni.compression.pruning import L1NormPruner
            >>> pruner = L1NormPruner(None, None)
            >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
            >>> pruner.reset(nn.Sequential(nn.Linear(2, 2)), config_list)
            >>> pruner.compress()[1]["0"]["bias"].sum()
            tensor(1.)
        """
        if self._wrapper_set is not None and self._wrapper_set.members > 1:
            raise RuntimeError(
                f"{type(self).__name__} is fused with another compressor of its model; make a new "
                "one instead of reset"
            )
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
        self._wrapper_set = WrapperSet(model, self._all_wrappers())
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

    def _join(self, wrappers: WrapperSet) -> None:
        """Unwrap the model; move own wrappers to those of another compressor; raise on conflict."""
        self.unwrap_model()
        existing = wrappers.by_name()
        own = {one.module_name: one for one in self._all_wrappers()}
        for name in own.keys() & existing.keys():
            problem = existing[name].conflict(own[name])
            if problem:
                raise ConfigListError("new_config_list", f"selects {name}, which {problem}")
        for name in own.keys() & existing.keys():
            existing[name].absorb(own[name])
            self._wrappers[name] = existing[name]
        wrappers.add(one for name, one in own.items() if name not in existing)
        self._wrapper_set = wrappers

    def _all_wrappers(self) -> Iterable[ModuleWrapper]:
        """Return all wrappers that stand in the wrapped model."""
        return self._wrappers.values()

    def wrap_model(self) -> nn.Module:
        """Put the wrappers into the model, unless it has them already; return the model.

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
        if self._wrapper_set is not None:
            self._wrapper_set.enter()
        return self.bound_model

    def unwrap_model(self) -> nn.Module:
        """Put the original modules back, unless the model has them already; return the model.

        Returns:
            The model, with the modules and parameters that it had before.
        """
        if self._wrapper_set is not None:
            self._wrapper_set.leave()
        return self.bound_model

    def _unwrap_model(self) -> nn.Module:
        """Restore and return the model: the name of NNI 2.x for `unwrap_model`."""
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
        """Set an attribute of every wrapper: a copy of a tensor as a buffer, other values plainly.

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
        """Register a forward hook on all wrappers; return a number to remove it by.

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
        """Remove an activation collector by its number; raise ValueError if it is unknown.

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
