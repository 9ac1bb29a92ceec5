"""Documented import path for `nni.compression.pruning.auto_compress_pruner`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.auto_compress_pruner import AutoCompressPruner

__all__ = ["AutoCompressPruner"]
