"""Documented import path for `nni.hpo.tuners.gp`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.gp import GPTuner

__all__ = ["GPTuner"]
