"""Documented import path for `nni.feature_engineering.gradient_selector`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.feature_engineering.gradient_selector import (
    FeatureGradientSelector,
    GradientFeatureSelector,
)

__all__ = ["FeatureGradientSelector", "GradientFeatureSelector"]
