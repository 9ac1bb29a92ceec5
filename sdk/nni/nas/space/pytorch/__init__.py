"""Graph format of networks of PyTorch."""

from nni.nas.space.pytorch.graph_space import PytorchGraphModelSpace

__all__ = ["PytorchGraphModelSpace"]
