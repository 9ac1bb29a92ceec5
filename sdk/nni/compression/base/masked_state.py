"""Parameters of a model without wrappers, with zeros where masks are."""

from collections.abc import Mapping

from torch import Tensor, nn

from nni.compression.base.target_space import is_parameter


def masked_state(
    model: nn.Module, masks: Mapping[str, Mapping[str, Tensor | None]]
) -> dict[str, Tensor]:
    """Return the state dict of an unwrapped model, with masked values zero.

    Args:
        model: the model, which is not changed.
        masks: masks by module and target name; None and those of inputs and outputs change nothing.

    Returns:
        Copies of the tensors, by the names of the original model.

    Raises:
        KeyError: a mask is of a parameter that the model lacks.

    Examples:
        >>> import torch
        >>> model = nn.Sequential(nn.Linear(1, 2, bias=False))
        >>> model[0].weight.data.fill_(3)
        tensor([[3.],
                [3.]])
        >>> masked_state(model, {"0": {"weight": torch.tensor([[0.0], [1.0]])}})["0.weight"]
        tensor([[0.],
                [3.]])
    """
    state = {key: value.detach().clone() for key, value in model.state_dict().items()}
    for name, targets in masks.items():
        for target, mask in targets.items():
            if mask is not None and is_parameter(target):
                key = f"{name}.{target}"
                state[key] *= mask.to(state[key])
    return state
