"""Documented import path for `nni.hpo.commands`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.commands import CommandType, send

__all__ = ["CommandType", "send"]
