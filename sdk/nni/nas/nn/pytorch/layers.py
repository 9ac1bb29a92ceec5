"""Every module of `torch.nn` under its own name, as a basic unit whose arguments may be mutables.

Use it in place of torch's: `import nni.nas.nn.pytorch.layers as nn`. In graphs such a module is one
node with its arguments. `Sequential`, `ModuleList` and `ModuleDict` are those of torch: what they
hold may be mutable, and classes derive from them. So are names that are no modules, such as
`functional`. Type checkers read the names from the stub beside this module.
"""

from torch import nn
from torch.nn import Module

from nni.nas.nn.pytorch.torch_modules import mutable_classes
from nni.nas.space.pytorch.units import CONTAINERS

_CLASSES: dict[str, type[Module]] = {
    **mutable_classes(__name__, ""),
    **{container.__name__: container for container in CONTAINERS},
}
globals().update(_CLASSES)

__all__ = ["Module", *_CLASSES]  # noqa: PLE0604 - one name for each class of torch


def __getattr__(name: str) -> object:
    """Return the attribute of `torch.nn` with a name."""
    return getattr(nn, name)
