"""Models in containers that run them on several devices or processes."""

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel


def plain_model(model: nn.Module) -> nn.Module:
    """Return the model inside `DataParallel` or `DistributedDataParallel`; another model as it is.

    Args:
        model: any module.

    Examples:
        >>> plain_model(nn.DataParallel(nn.ReLU()))
        ReLU()
    """
    while isinstance(model, nn.DataParallel | DistributedDataParallel):
        inner: nn.Module = model.module
        model = inner
    return model


def is_distributed(model: object) -> bool:
    """Return whether a model is trained by several processes at once.

    Args:
        model: a model, maybe in a container.

    Examples:
        >>> is_distributed(nn.ReLU())
        False
    """
    return isinstance(model, DistributedDataParallel)


def mean_over_processes(value: Tensor) -> Tensor:
    """Return the mean of a tensor over all processes; each of them must call it.

    Args:
        value: of the same shape in all processes.

    Returns:
        The same tensor in all processes.
    """
    found = value.detach().to(torch.float64)
    distributed.all_reduce(found)
    return found / distributed.get_world_size()
