"""Wrappers of all compressors of one model, which enter and leave it together."""

from collections.abc import Iterable, Mapping

from torch import nn

from nni.compression.base.module_wrapper import ModuleWrapper


class WrapperSet:
    """Wrappers of one model, shared by its compressors; puts them into the model and back out.

    Args:
        model: the model, without wrappers.
        wrappers: wrappers of some of its modules.

    Attributes:
        model: see above.
        is_wrapped: whether the wrappers are in the model now.
        members: number of compressors that share the set.

    Examples:
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(1, 1))
        >>> wrappers = WrapperSet(model, [ModuleWrapper(model[0], "0", {})])
        >>> wrappers.enter()
        >>> type(model[0]).__name__
        'ModuleWrapper'
        >>> wrappers.leave()
        >>> type(model[0]).__name__
        'Linear'
    """

    def __init__(self, model: nn.Module, wrappers: Iterable[ModuleWrapper]) -> None:
        self.model = model
        self.is_wrapped = False
        self.members = 1
        self._wrappers = {wrapper.module_name: wrapper for wrapper in wrappers}

    def by_name(self) -> dict[str, ModuleWrapper]:
        """Return the wrappers by the dotted name of their module."""
        return dict(self._wrappers)

    def add(self, wrappers: Iterable[ModuleWrapper]) -> None:
        """Add the wrappers of another compressor, while none is in the model.

        Args:
            wrappers: wrappers of other modules.
        """
        assert not self.is_wrapped  # else the model would have some of them only
        self._wrappers.update({wrapper.module_name: wrapper for wrapper in wrappers})
        self.members += 1

    def enter(self) -> None:
        """Put the wrappers into the model, unless it has them already."""
        if self.is_wrapped:
            return
        for wrapper in self._wrappers.values():
            wrapper.enter_model()
        self._replace({id(one.module): one for one in self._wrappers.values()})
        self.is_wrapped = True

    def leave(self) -> None:
        """Put the original modules back into the model, unless it has them already."""
        if not self.is_wrapped:
            return
        for wrapper in self._wrappers.values():
            wrapper.leave_model()
        self._replace({id(one): one.module for one in self._wrappers.values()})
        self.is_wrapped = False

    def _replace(self, by_id: Mapping[int, nn.Module]) -> None:
        """Replace modules, given by id, under every name that the model has for them."""
        for owner in list(self.model.modules()):
            if isinstance(owner, ModuleWrapper):
                continue  # it holds the module that it wraps
            for own, module in owner._modules.items():  # noqa: SLF001 - setattr rejects numbers
                if id(module) in by_id:
                    owner._modules[own] = by_id[id(module)]  # noqa: SLF001
