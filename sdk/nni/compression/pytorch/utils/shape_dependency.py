"""Documented import path for `nni.compression.utils.shape_dependency`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.utils.shape_dependency import (
    AttentionWeightDependency,
    ChannelDependency,
    GroupDependency,
    InputChannelDependency,
    ReshapeDependency,
)

__all__ = [
    "AttentionWeightDependency",
    "ChannelDependency",
    "GroupDependency",
    "InputChannelDependency",
    "ReshapeDependency",
]
