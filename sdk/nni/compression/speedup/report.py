"""Report of a removal: sizes before and after, error, and what stayed with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeptChannels:
    """Masked channels of a layer that could not be removed: number and reason.

    Examples:
        >>> from nni.compression.speedup import KeptChannels
        >>> print(KeptChannels("conv1", 4, "it is an output of the model"))
        conv1: 4 channels stay: it is an output of the model
    """

    layer: str
    """Path of the module."""
    count: int
    """Number of channels that are masked and stay."""
    reason: str
    """Rule or operation that keeps them."""

    def __str__(self) -> str:
        """Return layer, number of channels and reason as one line."""
        channels = "1 channel stays" if self.count == 1 else f"{self.count} channels stay"
        return f"{self.layer}: {channels}: {self.reason}"


@dataclass(frozen=True)
class SpeedupReport:
    """Result of a removal: output error, sizes, new shapes, masked channels that stay.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression import prune
        >>> model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> _, report = prune(model, torch.zeros(1, 3))
        >>> report.parameters_before, report.parameters_after, report.shapes["0.weight"]
        (50, 26, ((8, 3), (4, 3)))
    """

    error: float
    """max|masked - smaller| / max|masked| over the outputs for the example inputs."""
    parameters_before: int
    """Number of elements of all parameters."""
    parameters_after: int
    """The same after the removal."""
    shapes: Mapping[str, tuple[Shape, Shape]] = field(default_factory=dict)
    """Shapes before and after of the parameters and buffers that changed."""
    kept: tuple[KeptChannels, ...] = ()
    """Masked channels that stay, by layer."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Reason by parameter, for those with no axis that can shrink."""
    changed_norms: tuple[str, ...] = ()
    """Normalisations whose statistics changed, under `allow_norm_change`; `error` shows by how
    much the outputs differ."""
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Attributes and calls of modules that changed, which `save_smaller` stores."""
    planning_s: float = 0.0
    """CPU seconds without the two runs that measure `error`."""

    def __str__(self) -> str:
        """Return parameters, error, and what has stayed with the reason, as text."""
        share = self.parameters_after / max(self.parameters_before, 1)
        counts = f"{self.parameters_before} -> {self.parameters_after} ({share:.1%})"
        lines = [
            f"parameters {counts}, error {self.error:.1e}",
            *(str(one) for one in self.kept),
            *(f"{name}: {reason}" for name, reason in self.fixed.items()),
            *(f"{name}: its statistics changed" for name in self.changed_norms),
        ]
        return "\n".join(lines)
