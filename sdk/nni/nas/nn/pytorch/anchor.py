"""Place in a network that a mutator finds by its label: `MutationAnchor`."""

from typing import Any

from torch import nn

from nni.nas.utils.markers import basic_unit

__all__ = ["MutationAnchor"]


@basic_unit
class MutationAnchor(nn.Module):
    """Module that does nothing, for a mutator to replace.

    Args:
        label: name by which mutators find it.
        **info: what the mutator needs to know, such as channels and strides.

    Examples:
        >>> anchor = MutationAnchor(label="block_0", channels=16)
        >>> anchor.label, anchor.info, anchor(3)
        ('block_0', {'channels': 16}, 3)
    """

    def __init__(self, *, label: str, **info: Any) -> None:  # noqa: ANN401 - what mutators need
        super().__init__()
        self.label = label
        self.info = info

    def forward(self, inputs: Any) -> Any:  # noqa: ANN401 - anything
        """Return the input.

        Args:
            inputs: anything.

        Returns:
            The same.
        """
        return inputs

    def extra_repr(self) -> str:
        """Return label and information, for the text of the module.

        Returns:
            Part of the text.
        """
        return ", ".join(
            [f"label={self.label!r}", *(f"{name}={value!r}" for name, value in self.info.items())]
        )
