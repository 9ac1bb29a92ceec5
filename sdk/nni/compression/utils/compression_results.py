"""Masks of a pruner applied to a model without wrappers."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from nni.compression.speedup.model_speedup import Masks, apply_masks, load_masks


def apply_compression_results(
    model: nn.Module, masks_file: Masks | str | Path, map_location: object = None
) -> None:
    """Multiply the parameters of a model by masks in place; later training may undo it.

    The model then computes what the masked model did; it is neither smaller nor faster, which
    `ModelSpeedup` makes it.

    Args:
        model: The model, without wrappers of a pruner; changed in place.
        masks_file: Path of a file that `export_model` wrote, or the masks. Only tensors are read
            from a file; it cannot run code.
        map_location: Device for masks from a file.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: masks do not fit the model, or it is wrapped by a pruner.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.utils import apply_compression_results
        >>> model = nn.Sequential(nn.Linear(1, 2, bias=False))
        >>> apply_compression_results(model, {"0": {"weight": torch.tensor([[0.0], [1.0]])}})
        >>> bool(model[0].weight[0, 0] == 0)
        True
    """
    apply_masks(model, load_masks(masks_file, map_location))
