"""Documented import path for `nni.compression.utils.mask_conflict`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.utils.mask_conflict import (
    ChannelMaskConflict,
    GroupMaskConflict,
    fix_mask_conflict,
)

__all__ = ["ChannelMaskConflict", "GroupMaskConflict", "fix_mask_conflict"]
