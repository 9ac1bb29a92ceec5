"""Base of all model spaces."""

from nni.mutable import Mutable

__all__ = ["BaseModelSpace"]


class BaseModelSpace(Mutable):
    """Base of model spaces: mutables whose `freeze` returns one network of the space.

    A strategy samples and enumerates it by the methods of `nni.mutable.Mutable`; `freeze` returns
    one network.

    Examples:
        >>> from nni.nas.nn.pytorch import ModelSpace
        >>> issubclass(ModelSpace, BaseModelSpace)
        True
    """
