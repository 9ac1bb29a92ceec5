"""Base of all model spaces."""

from nni.mutable import Mutable

__all__ = ["BaseModelSpace"]


class BaseModelSpace(Mutable):
    """Set of networks: the network that a user writes, or that with its evaluator.

    A strategy samples and enumerates it by the methods of `nni.mutable.Mutable`; `freeze` returns
    one network.

    Examples:
        >>> from nni.nas.nn.pytorch import ModelSpace
        >>> issubclass(ModelSpace, BaseModelSpace)
        True
    """
