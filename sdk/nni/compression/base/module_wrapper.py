"""Wrapper that masks the parameters, inputs and outputs of one module."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from nni.compression.base.target_space import (
    INPUT,
    OUTPUT,
    is_mask,
    is_parameter,
    masked,
    masked_inputs,
    masked_outputs,
)
from nni.compression.config.settings import ApplyMethod, PruningSettings

_SUFFIX = "_mask"


class ModuleWrapper(nn.Module):
    """Module that computes another one with masks on its targets.

    The masks are buffers `<target>_mask`: they move between devices, replicate, pickle and stand
    in the state dict. Those of parameters are ones at first; those of inputs and outputs do not
    exist until they are set. A forward pass sets masked elements of weight and bias to zero, and
    no gradient reaches them.

    Attributes that the wrapper lacks are those of the wrapped module; a masked parameter is read
    with its mask.

    Args:
        module: the module to wrap; it and its parameters stay the same objects.
        module_name: its dotted name in the model.
        targets: settings by target name.

    Attributes:
        module: see above.
        module_name: see above.
        targets: see above.

    Raises:
        AttributeError: the module has no parameter of a target's name.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.base import ModuleWrapper
        >>> from nni.compression.config.settings import PruningSettings
        >>> linear = nn.Linear(2, 1, bias=False)
        >>> wrapper = ModuleWrapper(linear, "fc", {"weight": PruningSettings(sparse_ratio=0.5)})
        >>> wrapper.set_mask("weight", torch.tensor([[0.0, 1.0]]))
        >>> bool(wrapper(torch.tensor([[5.0, 0.0]])) == 0)
        True
    """

    module: nn.Module

    def __init__(
        self, module: nn.Module, module_name: str, targets: Mapping[str, PruningSettings]
    ) -> None:
        super().__init__()
        self.module = module
        self.module_name = module_name
        self.targets = dict(targets)
        self.training = module.training
        for target in self.targets:
            if not is_parameter(target):
                self.register_buffer(target + _SUFFIX, None)
                continue
            parameter = self._parameter(target)
            ones = torch.ones_like(parameter, requires_grad=False)
            self.register_buffer(target + _SUFFIX, ones)

    def mask(self, target: str) -> Tensor | None:
        """Return the mask of a target; None for an input or output without one.

        Args:
            target: name of the target.

        Raises:
            KeyError: the wrapper has no such target.
        """
        if target not in self.targets:
            raise KeyError(
                f"{self.module_name} has no target {target!r}; it has {', '.join(self.targets)}"
            )
        return self._buffers[target + _SUFFIX]

    def set_mask(self, target: str, mask: Tensor) -> None:
        """Replace the mask of a target.

        Args:
            target: name of the target.
            mask: 0 and 1; of the shape of a parameter, or of one that broadcasts to that of an
                input or output.

        Raises:
            KeyError: the wrapper has no such target.
            ValueError: another value than 0 and 1, or another shape than the parameter's.
        """
        where = f"the mask of {self.module_name}.{target}"
        old = self.mask(target)
        if not is_mask(mask):
            raise ValueError(f"{where} must hold only 0 and 1")
        if not is_parameter(target):
            self._buffers[target + _SUFFIX] = mask.detach().clone()
            return
        assert old is not None  # parameters have a mask from the start
        if mask.shape != old.shape:
            raise ValueError(f"{where} must have shape {tuple(old.shape)}, got {tuple(mask.shape)}")
        with torch.no_grad():
            old.copy_(mask)  # in place: replicas and captured graphs keep their buffer

    def parameter(self, target: str) -> nn.Parameter:
        """Return the parameter of a target, without its mask.

        Args:
            target: name of the target.

        Raises:
            AttributeError: the module has no such parameter.
            TypeError: it is a tensor, but no parameter.
        """
        found = self._parameter(target)
        if not isinstance(found, nn.Parameter):
            raise TypeError(f"{self.module_name}.{target} is no parameter")
        return found

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the wrapped signature
        """Compute the wrapped module with all masks applied.

        Args:
            args: positional arguments of the wrapped module.
            kwargs: named arguments of the wrapped module.

        Returns:
            What the wrapped module returns.
        """
        inputs = self._activation_masks(INPUT)
        if inputs:
            args, kwargs = masked_inputs(self.module, inputs, args, kwargs)
        parameters = {
            target: self._masked(target)
            for target, settings in self.targets.items()
            if is_parameter(target) and settings.apply_method != "bypass"
        }
        output = functional_call(self.module, parameters, args, kwargs)
        return masked_outputs(output, self._activation_masks(OUTPUT))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - attributes of any module
        if name == "module" or name.startswith("__"):
            return super().__getattr__(name)
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if name in own.get(table, {}):
                return own[table][name]
        inner = own.get("_modules", {}).get("module")
        if inner is None:
            return super().__getattr__(name)
        if name in own.get("targets", {}) and is_parameter(name):
            return self._masked(name)
        return getattr(inner, name)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:  # noqa: ANN401
        """Load masks of inputs and outputs as well, which do not exist at first."""
        for target in self.targets:
            saved = state_dict.get(f"{prefix}{target}{_SUFFIX}")
            if saved is not None and self._buffers[target + _SUFFIX] is None:
                self._buffers[target + _SUFFIX] = torch.ones_like(saved)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _parameter(self, target: str) -> Tensor:
        found = getattr(self.module, target, None)
        if isinstance(found, Tensor):
            return found
        raise AttributeError(f"{self.module_name} has no parameter {target!r}")

    def _masked(self, target: str) -> Tensor:
        parameter = self._parameter(target)
        mask = self._buffers[target + _SUFFIX]
        method: ApplyMethod = self.targets[target].apply_method
        assert mask is not None  # parameters have a mask from the start
        if method == "mul":
            # Through `.data`: a module that is used twice in a pass has saved the parameter.
            parameter.data.mul_(mask.to(parameter.dtype))
        return masked(parameter, mask, method)

    def _activation_masks(self, kind: str) -> dict[str, tuple[Tensor, ApplyMethod]]:
        found = {}
        for target, settings in self.targets.items():
            mask = self._buffers[target + _SUFFIX] if target.startswith(kind) else None
            if mask is not None:
                found[target.removeprefix(kind)] = (mask, settings.apply_method)
        return found


def plain_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a model by the names that they have without wrappers.

    Args:
        model: a model, some of whose modules may be wrapped.

    Examples:
        >>> from torch import nn
        >>> wrapped = nn.Sequential(ModuleWrapper(nn.Linear(1, 1, bias=False), "0", {}))
        >>> list(plain_parameters(wrapped))
        ['0.weight']
    """
    found: dict[str, nn.Parameter] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        owner, _, own = name.rpartition(".")
        found[_plain(model, owner, own)] = parameter
    return found


def _plain(model: nn.Module, owner: str, own: str) -> str:
    parts: list[str] = []
    module = model
    for part in owner.split(".") if owner else ():
        wrapped = isinstance(module, ModuleWrapper)
        module = module.get_submodule(part)
        if not wrapped:
            parts.append(part)
    return ".".join([*parts, own])
