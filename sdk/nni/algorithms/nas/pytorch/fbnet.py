"""Documented import path for `nni.retiarii.oneshot.pytorch.fbnet`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.retiarii.oneshot.pytorch.fbnet import FBNetTrainer, LookUpTable, NASConfig

__all__ = ["FBNetTrainer", "LookUpTable", "NASConfig"]
