"""Feature engineering for tables: selection of columns, and generation of new ones.

Names are imported on first use, so that `import nni.feature_engineering` loads neither scikit-learn
nor torch nor LightGBM. The extra `feature` installs the three.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.feature_engineering.feature_selector import FeatureSelector
    from nni.feature_engineering.gbdt_selector import GBDTSelector
    from nni.feature_engineering.generated_feature import (
        GeneratedFeature,
        candidate_features,
        candidate_space,
        chosen_features,
    )
    from nni.feature_engineering.generation import FeatureGenerator
    from nni.feature_engineering.gradient_selector import (
        FeatureGradientSelector,
        GradientFeatureSelector,
    )

__all__ = [
    "FeatureGenerator",
    "FeatureGradientSelector",
    "FeatureSelector",
    "GBDTSelector",
    "GeneratedFeature",
    "GradientFeatureSelector",
    "candidate_features",
    "candidate_space",
    "chosen_features",
]

_HOMES = {
    "FeatureGenerator": "generation",
    "FeatureGradientSelector": "gradient_selector",
    "FeatureSelector": "feature_selector",
    "GBDTSelector": "gbdt_selector",
    "GeneratedFeature": "generated_feature",
    "GradientFeatureSelector": "gradient_selector",
    "candidate_features": "generated_feature",
    "candidate_space": "generated_feature",
    "chosen_features": "generated_feature",
}


def __getattr__(name: str) -> object:
    """Import a public name from its home the first time it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.feature_engineering' has no attribute {name!r}")
    home = importlib.import_module(f"nni.feature_engineering.{_HOMES[name]}")
    value: object = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
