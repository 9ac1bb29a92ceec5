"""Documented import path for `nni.feature_engineering.gbdt_selector`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.feature_engineering.gbdt_selector import GBDTSelector

__all__ = ["GBDTSelector"]
