"""Documented import path for `nni.hpo.tuners.dngo`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.hpo.tuners.dngo import DNGOTuner

__all__ = ["DNGOTuner"]
