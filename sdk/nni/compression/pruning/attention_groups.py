"""Projections of each attention of a model: found from one run or given by name."""

from collections.abc import Mapping, Sequence
from typing import Final

from torch import Tensor, nn

from nni.compression.speedup.ancestry import AttentionLayers, attention_layers
from nni.compression.speedup.graph import Inputs
from nni.compression.speedup.recording import capture

_MEMBERS: Final = 4


def attention_groups(
    model: nn.Module, named: Sequence[Sequence[str]] | None, dummy_input: Inputs | None
) -> list[AttentionLayers]:
    """Return four projections' names per attention: given ones, checked, or by a trace.

    Args:
        model: an unwrapped model.
        named: names of the four projections of each attention, the output projection last; None to
            find them.
        dummy_input: inputs of one run of the model, in which they are found.

    Returns:
        Four names for each attention.

    Raises:
        ValueError: neither names nor inputs are given, or a name is wrong.

    Examples:
        >>> from torch import nn
        >>> model = nn.ModuleDict({name: nn.Linear(2, 2) for name in ("q", "k", "v", "out")})
        >>> attention_groups(model, [["q", "k", "v", "out"]], None)
        [('q', 'k', 'v', 'out')]
    """
    linear = {name for name, one in model.named_modules() if isinstance(one, nn.Linear)}
    if named is None:
        if dummy_input is None:
            raise ValueError("attention_name_groups or dummy_input must be given")
        return attention_layers(capture(model, dummy_input), linear)
    for group in named:
        if len(group) != _MEMBERS:
            raise ValueError(f"attention_name_groups must hold four names each, got {list(group)}")
        for name in group:
            if name not in linear:
                raise ValueError(f"attention_name_groups has {name!r}, which is no Linear layer")
    return [(one[0], one[1], one[2], one[3]) for one in named]


def check_projections(
    group: AttentionLayers, weights: Mapping[str, Tensor], head_hidden_dim: int
) -> None:
    """Raise ValueError unless the projections of an attention fit together.

    Args:
        group: names of the projections.
        weights: `(features, inputs)` by name.
        head_hidden_dim: features of a head.

    Raises:
        ValueError: shapes differ, the output projection reads another number of features, or heads
            do not divide the features.
    """
    shapes = [tuple(weights[name].shape) for name in group]
    if len(set(shapes[:-1])) > 1:
        raise ValueError(
            f"the projections {', '.join(group[:-1])} must have equal shapes, got {shapes[:-1]}"
        )
    features = shapes[0][0]
    if shapes[-1][1] != features:
        raise ValueError(
            f"{group[-1]} must read the {features} features of {group[2]}, got {shapes[-1][1]}"
        )
    if features % head_hidden_dim:
        raise ValueError(
            f"head_hidden_dim must divide the {features} features of {group[0]}, got "
            f"{head_hidden_dim}"
        )
