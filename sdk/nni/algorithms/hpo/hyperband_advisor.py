"""Documented import path for `nni.hpo.advisors.hyperband`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.advisors.hyperband import Hyperband

__all__ = ["Hyperband"]
