"""Pruner of channels by their largest weight."""

from nni.compression.base import Pruner


class PeakPruner(Pruner):
    """Masks the output channels whose largest absolute weight is smallest, with their bias.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> layer = nn.Linear(2, 3)
        >>> layer.weight.data = torch.tensor([[2.0, 0.0], [1.1, 1.1], [-1.5, 0.2]])
        >>> config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.34}]
        >>> _, masks = PeakPruner(nn.Sequential(layer), config_list).compress()
        >>> masks["0"]["bias"]
        tensor([1., 0., 1.])
    """

    default_granularity = "out_channel"

    def calculate_metrics(self):
        """Return the metric of each channel; the channels with the smallest are masked."""
        return {key: peaks(blocks) for key, blocks in self.weight_blocks()}


def peaks(blocks):
    """Return the largest absolute value of each block.

    Args:
        blocks: `(*grid, elements)`, the weights of each channel.

    Returns:
        `(*grid)`.
    """
    return blocks.abs().amax(-1)
