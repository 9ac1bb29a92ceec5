"""Documented spelling of the grid search tuner; its home is `nni.hpo.tuners.grid_search`."""

from nni.hpo.tuners.grid_search import GridSearchTuner

__all__ = ["GridSearchTuner"]
