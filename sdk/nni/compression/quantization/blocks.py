"""Blocks of a quantized target: the elements that share a scale."""

from torch import Tensor

from nni.compression.base.target_quantizer import TargetPlace
from nni.compression.config.quantization_settings import QuantizationSettings
from nni.compression.masking.granularity import block_sizes, expanded, to_blocks


def shared_blocks(value: Tensor, settings: QuantizationSettings, place: TargetPlace) -> Tensor:
    """Return a target's elements with those that share a scale along the last dimension.

    Args:
        value: the target, any shape.
        settings: its settings.
        place: the target.

    Returns:
        `(..., elements)`; all dimensions but the last one are those of the scale.

    Raises:
        ValueError: the block sizes do not divide the shape.

    Examples:
        >>> import torch
        >>> settings = QuantizationSettings(granularity="out_channel")
        >>> shared_blocks(torch.ones(4, 3, 5, 5), settings, TargetPlace("conv", "weight")).shape
        torch.Size([4, 1, 1, 1, 75])
    """
    if settings.granularity == "default":
        return value.flatten()
    return to_blocks(value, _sizes(value, settings, place))


def spread(
    statistic: Tensor, value: Tensor, settings: QuantizationSettings, place: TargetPlace
) -> Tensor:
    """Return a scale or zero point in a shape that broadcasts to that of the target.

    Args:
        statistic: one number for each block, in the shape that `shared_blocks` has.
        value: the target, any shape.
        settings: its settings.
        place: the target.

    Examples:
        >>> import torch
        >>> settings = QuantizationSettings(granularity=(1, 2))
        >>> scale = torch.tensor([[1.0, 2.0]])
        >>> spread(scale, torch.ones(1, 4), settings, TargetPlace("fc", "weight"))
        tensor([[1., 1., 2., 2.]])
    """
    pairs = zip(statistic.shape, value.shape, strict=False)
    if statistic.dim() == 0 or all(one in {1, size} for one, size in pairs):
        return statistic
    return expanded(statistic, _sizes(value, settings, place))


def _sizes(value: Tensor, settings: QuantizationSettings, place: TargetPlace) -> tuple[int, ...]:
    granularity = settings.granularity
    if place.is_parameter and value.dim() == 1 and isinstance(granularity, str):
        return (1,)  # a vector has one value for each channel
    transposed = place.module_type.startswith("ConvTranspose")
    return block_sizes(granularity, value.shape, transposed=transposed)
