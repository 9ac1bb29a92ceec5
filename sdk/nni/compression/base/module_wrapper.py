"""Wrapper that masks and quantizes the parameters, inputs and outputs of one module."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.func import functional_call

from nni.compression.base.folding import fold_batch_norm, is_batch_norm
from nni.compression.base.target_quantizer import TargetQuantizer
from nni.compression.base.target_space import (
    INPUT,
    OUTPUT,
    Change,
    changed_inputs,
    changed_outputs,
    is_mask,
    is_parameter,
    masked,
)
from nni.compression.config.quantization_settings import FIRST_INPUT, FIRST_OUTPUT
from nni.compression.config.settings import ApplyMethod, PruningSettings

MaskFunction = Callable[[Tensor], Tensor]

_SUFFIX = "_mask"
_INNER: Final = "module"
_FUSED: Final = "fused_modules"
_SCALE_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "weight": ("weight_", ""),
    FIRST_INPUT: ("input_",),
    FIRST_OUTPUT: ("output_",),
}
"""Beginnings of the names under which NNI 2.x documents the scale of a target."""
_EMPTY: Final[Mapping[str, type[nn.Module]]] = {
    "quantizers": nn.ModuleDict,
    _FUSED: nn.ModuleList,
}
"""Containers that a wrapper without members does not have as children."""


class ModuleWrapper(nn.Module):
    """Module that computes another one with masks on its targets, and with targets quantized.

    A target may have a mask, a quantizer, or both: the mask comes first.

    The masks are buffers `<target>_mask`: they move between devices, replicate, pickle and stand
    in the state dict. Those of parameters are ones at first; those of inputs and outputs do not
    exist until they are set. A forward pass sets masked elements of weight and bias to zero, and
    no gradient reaches them.

    Fused modules follow the wrapped one and are computed here, before the output is quantized; in
    their own place in the model they are to change nothing (`FusedModule`). A batch norm among
    them is folded into weight and bias, which are then quantized; in training mode it observes
    the output of the module first.

    Attributes that the wrapper lacks are those of the wrapped module; a parameter that is a target
    is read as the module computes with it.

    Args:
        module: the module to wrap; it and its parameters stay the same objects.
        module_name: its dotted name in the model.
        targets: settings of the masks by target name.
        quantizers: quantizers by target name.
        fused: modules that follow this one, in order; a batch norm only as the first.

    Attributes:
        module: see above.
        module_name: see above.
        targets: see above.
        quantizers: see above.
        fused_modules: see above.

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
    quantizers: nn.ModuleDict
    fused_modules: nn.ModuleList

    def __init__(
        self,
        module: nn.Module,
        module_name: str,
        targets: Mapping[str, PruningSettings],
        quantizers: Mapping[str, TargetQuantizer] | None = None,
        fused: Sequence[nn.Module] = (),
    ) -> None:
        super().__init__()
        self.module = module
        self.module_name = module_name
        self.targets = dict(targets)
        self._learned: dict[str, MaskFunction] = {}
        if quantizers:
            self.quantizers = nn.ModuleDict(quantizers)
        if fused:
            self.fused_modules = nn.ModuleList(fused)
        self._published: list[str] = []
        self.training = module.training
        self.quantizers.train(module.training)
        for target in self.targets:
            if not is_parameter(target):
                self.register_buffer(target + _SUFFIX, None)
                continue
            parameter = self._parameter(target)
            ones = torch.ones_like(parameter, requires_grad=False)
            self.register_buffer(target + _SUFFIX, ones)

    def enter_model(self) -> None:
        """Take over the wrapped module's mode; set quantizers' scales as its attributes.

        While the wrapper is in a model the module has `weight_scale`, `weight_zero_point` and the
        same of `input` and `output`, as NNI 2.x documents; `scale` and `zero_point` are those of
        the weight. An attribute of the module's own is left as it is.
        """
        self.training = self.module.training
        self.quantizers.train(self.training)
        self.fused_modules.training = self.training
        self._published = [name for name in self._scales() if not hasattr(self.module, name)]
        self._publish()

    def leave_model(self) -> None:
        """Remove the scales that `enter_model` set on the wrapped module."""
        for name in self._published:
            self.module.__dict__.pop(name, None)
        self._published = []

    def mask(self, target: str) -> Tensor | None:
        """Return a target's mask itself; None if an input or output has none; raise if unknown.

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
        """Replace a target's mask by a copy of another one, of 0 and 1 and the same shape.

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

    def learn_mask(self, target: str, differentiable: MaskFunction | None) -> None:
        """Set the differentiable function by which a parameter's mask is learned; None ends it.

        Meanwhile masked elements of the parameter keep their values, as they may come back.

        Args:
            target: name of the parameter.
            differentiable: returns a tensor that equals the mask, which it gets, and has a
                gradient; None for the mask itself.

        Examples:
            >>> import torch
            >>> from torch import nn
            >>> from nni.compression.base import ModuleWrapper
            >>> from nni.compression.config.settings import PruningSettings
            >>> linear, scores = nn.Linear(1, 2, bias=False), torch.zeros(2, 1, requires_grad=True)
            >>> wrapper = ModuleWrapper(linear, "fc", {"weight": PruningSettings(sparse_ratio=0.5)})
            >>> wrapper.learn_mask("weight", lambda mask: mask + scores - scores.detach())
            >>> wrapper(torch.ones(1, 1)).sum().backward()
            >>> torch.equal(scores.grad, linear.weight.detach())
            True
        """
        self._learned.pop(target, None)
        if differentiable is not None:
            self._learned[target] = differentiable

    def conflict(self, other: "ModuleWrapper") -> str | None:
        """Return why this wrapper cannot absorb another one of its module; None if it can.

        Args:
            other: wrapper of the same module.

        Returns:
            The reason, as the end of a sentence about the module; None if there is none.
        """
        if isinstance(self, FusedModule) or isinstance(other, FusedModule):
            return "is fused with the layer before it; exclude it, or leave fuse_names out"
        if self.targets and other.targets:
            return "is pruned by another compressor already; exclude it"
        if len(self.quantizers) and len(other.quantizers):
            return "is quantized by another compressor already; exclude it"
        return None

    def absorb(self, other: "ModuleWrapper") -> None:
        """Take over the masks, quantizers and fused modules of another wrapper.

        Args:
            other: wrapper of the same module, without `conflict`; it is not used any more.
        """
        self.targets.update(other.targets)
        for target in other.targets:
            self.register_buffer(target + _SUFFIX, other._buffers[target + _SUFFIX])  # noqa: SLF001
        if len(other.quantizers):
            self.quantizers = other.quantizers
        if len(other.fused_modules):
            self.fused_modules = other.fused_modules

    def clear_masked(self) -> None:
        """Zero masked values of parameters in place, unless `add` or a learned mask is used.

        Values whose mask is being learned, or is not multiplied, stay.
        """
        for target, settings in self.targets.items():
            if is_parameter(target) and settings.apply_method == "mul":
                mask = self.mask(target)
                if mask is not None and target not in self._learned:
                    parameter = self._parameter(target)
                    parameter.data.mul_(mask.to(parameter.dtype))

    def parameter(self, target: str) -> nn.Parameter:
        """Return the wrapped module's parameter of a target, unmasked; raise if it has none.

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
        """Compute the wrapped and fused modules, with targets masked and quantized.

        Args:
            args: positional arguments of the wrapped module.
            kwargs: named arguments of the wrapped module.

        Returns:
            What the wrapped module returns.
        """
        for changes in self._changes(INPUT):
            args, kwargs = changed_inputs(self.module, changes, args, kwargs)
        values = self._unquantized(args, kwargs)
        for target, quantizer in self.quantizers.items():
            if is_parameter(target):
                values[target] = quantizer(values[target])
        output = functional_call(self.module, values, args, kwargs)
        for fused in self.fused_modules[1 if self._batch_norm else 0 :]:
            output = fused(output)
        for changes in self._changes(OUTPUT):
            output = changed_outputs(output, changes)
        return output

    def effective_parameters(self) -> dict[str, Tensor]:
        """Return target parameters by name: masked, batch norm folded in, not quantized.

        Returns:
            By name; masked, and with the batch norm folded in.
        """
        return self._with_batch_norm(self._targeted())

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - attributes of any module
        if name == _INNER or name.startswith("__"):
            return super().__getattr__(name)
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if name in own.get(table, {}):
                return own[table][name]
        if name in _EMPTY:
            return _EMPTY[name]()
        modules = own.get("_modules", {})
        if modules.get(_INNER) is None:
            return super().__getattr__(name)
        if is_parameter(name) and self._changes_parameter(name):
            value = self.effective_parameters()[name]
            return self.quantizers[name](value) if name in self.quantizers else value
        return getattr(modules[_INNER], name)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:  # noqa: ANN401
        """Load the state, with masks of inputs and outputs that this wrapper still lacks."""
        for target in self.targets:
            saved = state_dict.get(f"{prefix}{target}{_SUFFIX}")
            if saved is not None and self._buffers[target + _SUFFIX] is None:
                self._buffers[target + _SUFFIX] = torch.ones_like(saved)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of torch
        """Move to another device or dtype; publish the moved scales on the wrapped module."""
        moved = super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]  # torch's own
        self._publish()
        return moved

    def _publish(self) -> None:
        scales = self._scales()
        self.module.__dict__.update({name: scales[name] for name in self._published})

    def _scales(self) -> dict[str, Tensor]:
        """Return the quantizers' scales and zero points by their attribute names in NNI 2.x."""
        found: dict[str, Tensor] = {}
        for target, quantizer in self.quantizers.items():
            assert isinstance(quantizer, TargetQuantizer)  # no other is added
            for prefix in _SCALE_PREFIXES.get(target, ()):
                found[f"{prefix}scale"] = quantizer.scale
                found[f"{prefix}zero_point"] = quantizer.zero_point
        return found

    def _changes_parameter(self, name: str) -> bool:
        folded = name in {"weight", "bias"} and self._batch_norm is not None
        return folded or name in self.__dict__.get("targets", {}) or name in self.quantizers

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
        if target in self._learned:
            return parameter * self._learned[target](mask.to(parameter.dtype))
        if method == "mul":
            # Through `.data`: a module that is used twice in a pass has saved the parameter.
            parameter.data.mul_(mask.to(parameter.dtype))
        return masked(parameter, mask, method)

    @property
    def _batch_norm(self) -> nn.Module | None:
        first = next(iter(self.fused_modules), None)
        return first if first is not None and is_batch_norm(first) else None

    def _unquantized(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Tensor]:
        """Return masked parameters, batch norm folded in; in training update its statistics."""
        values = self._targeted()
        batch_norm = self._batch_norm
        if batch_norm is not None and batch_norm.training:
            with torch.no_grad():  # this call is only for its running statistics
                batch_norm(functional_call(self.module, values, args, kwargs))
        return self._with_batch_norm(values)

    def _targeted(self) -> dict[str, Tensor]:
        """Return by name the parameters that are targets, masked but not quantized."""
        found = {
            target: self._parameter(target) for target in self.quantizers if is_parameter(target)
        }
        for target in self.targets:
            if is_parameter(target):
                found[target] = self._masked(target)
        return found

    def _with_batch_norm(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        batch_norm = self._batch_norm
        if batch_norm is None:
            return values
        bias: Any = self.module.bias
        folded_weight, folded_bias = fold_batch_norm(
            values.get("weight", self._parameter("weight")), values.get("bias", bias), batch_norm
        )
        return {**values, "weight": folded_weight, "bias": folded_bias}

    def _changes(self, kind: str) -> Iterator[dict[str, Change]]:
        """Yield functions that mask, then quantize, inputs or outputs, by name without `kind`."""
        masks: dict[str, Change] = {}
        for target, settings in self.targets.items():
            mask = self._buffers[target + _SUFFIX] if target.startswith(kind) else None
            if mask is not None:
                method: ApplyMethod = settings.apply_method
                masks[target.removeprefix(kind)] = partial(masked, mask=mask, method=method)
        yield masks
        yield {
            target.removeprefix(kind): quantizer
            for target, quantizer in self.quantizers.items()
            if target.startswith(kind)
        }


class FusedModule(ModuleWrapper):
    """Wrapper that returns its input, because another wrapper computes the module.

    Args:
        module: the module, whose parameters stay in the model.
        module_name: its dotted name in the model.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> FusedModule(nn.ReLU(), "relu")(torch.tensor(-1.0))
        tensor(-1.)
    """

    def __init__(self, module: nn.Module, module_name: str) -> None:
        super().__init__(module, module_name, {})

    def forward(self, value: Tensor) -> Tensor:
        """Return the input.

        Args:
            value: any shape.

        Returns:
            The same tensor.
        """
        return value


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
        plain = _plain(model, name)
        if plain is not None:
            found[plain] = parameter
    return found


def _plain(model: nn.Module, name: str) -> str | None:
    """Return the name of a parameter without wrappers; None for a second name of a fused one."""
    *owners, own = name.split(".")
    parts: list[str] = []
    module = model
    for part in owners:
        if isinstance(module, ModuleWrapper) and part == _FUSED:
            return None
        if not (isinstance(module, ModuleWrapper) and part == _INNER):
            parts.append(part)
        module = module.get_submodule(part)
    return ".".join([*parts, own])
