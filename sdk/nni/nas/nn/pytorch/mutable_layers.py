"""`Mutable…`: every module of `torch.nn` with arguments that may be mutables.

`MutableConv2d(3, nni.choice("channels", [16, 32]), 3)` is a `torch.nn.Conv2d` of the default; it is
frozen to the one of the sample. Type checkers read the names from the stub beside this module.
"""

from nni.nas.nn.pytorch.torch_modules import MUTABLE_PREFIX, mutable_classes

_CLASSES = mutable_classes(__name__, MUTABLE_PREFIX)
globals().update(_CLASSES)

__all__ = list(_CLASSES)
