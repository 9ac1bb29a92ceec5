"""Integrations: callbacks of training loops, searchers and reporters of other libraries.

Names are imported on first use, so that `import nni.integrations` loads none of these libraries. A
name whose library is missing raises an ImportError that names the extra.
"""

import importlib

TYPE_CHECKING = False  # `typing` would take more than this package may
if TYPE_CHECKING:
    from nni.integrations.catboost import CatBoostCallback
    from nni.integrations.keras import KerasCallback
    from nni.integrations.lightgbm import LightGBMCallback
    from nni.integrations.lightning import LightningCallback
    from nni.integrations.mlflow import MlflowCallback, report_to_mlflow
    from nni.integrations.optuna import (
        NNISampler,
        OptunaTuner,
        optuna_samples,
        optuna_search_space,
        to_optuna,
    )
    from nni.integrations.ray_tune import NNISearch
    from nni.integrations.sklearn import NNISearchCV
    from nni.integrations.tensorboard import TensorBoardCallback, report_to_tensorboard
    from nni.integrations.tracking import TrackedTrial
    from nni.integrations.transformers import TransformersCallback, search_trainer
    from nni.integrations.wandb import WandbCallback, report_to_wandb
    from nni.integrations.xgboost import XGBoostCallback

_HOMES = {
    "CatBoostCallback": "catboost",
    "KerasCallback": "keras",
    "LightGBMCallback": "lightgbm",
    "LightningCallback": "lightning",
    "MlflowCallback": "mlflow",
    "NNISampler": "optuna",
    "NNISearch": "ray_tune",
    "NNISearchCV": "sklearn",
    "OptunaTuner": "optuna",
    "TensorBoardCallback": "tensorboard",
    "TrackedTrial": "tracking",
    "TransformersCallback": "transformers",
    "WandbCallback": "wandb",
    "XGBoostCallback": "xgboost",
    "optuna_samples": "optuna",
    "optuna_search_space": "optuna",
    "report_to_mlflow": "mlflow",
    "report_to_tensorboard": "tensorboard",
    "report_to_wandb": "wandb",
    "search_trainer": "transformers",
    "to_optuna": "optuna",
}

__all__ = [
    "CatBoostCallback",
    "KerasCallback",
    "LightGBMCallback",
    "LightningCallback",
    "MlflowCallback",
    "NNISampler",
    "NNISearch",
    "NNISearchCV",
    "OptunaTuner",
    "TensorBoardCallback",
    "TrackedTrial",
    "TransformersCallback",
    "WandbCallback",
    "XGBoostCallback",
    "optuna_samples",
    "optuna_search_space",
    "report_to_mlflow",
    "report_to_tensorboard",
    "report_to_wandb",
    "search_trainer",
    "to_optuna",
]


def __getattr__(name: str) -> object:
    """Import a public name from its home the first time it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
