"""Charts of trials: of a study, the result of `optimize`, an experiment or an exported file.

Each function returns a figure of plotly, or of matplotlib where plotly is missing
(`pip install 'nni[plot]'`). Names are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nni.plot.fronts import hypervolume, pareto_front
    from nni.plot.parameters import (
        contour,
        parallel_coordinates,
        parameter_importances,
        rank,
        slices,
    )
    from nni.plot.possible_gain import improvement
    from nni.plot.progress import edf, history, intermediate_results, timeline, tuners
    from nni.plot.trials import PlottedTrial, trials_of

_HOMES = {
    "PlottedTrial": "nni.plot.trials",
    "contour": "nni.plot.parameters",
    "edf": "nni.plot.progress",
    "history": "nni.plot.progress",
    "hypervolume": "nni.plot.fronts",
    "improvement": "nni.plot.possible_gain",
    "intermediate_results": "nni.plot.progress",
    "parallel_coordinates": "nni.plot.parameters",
    "parameter_importances": "nni.plot.parameters",
    "pareto_front": "nni.plot.fronts",
    "rank": "nni.plot.parameters",
    "slices": "nni.plot.parameters",
    "timeline": "nni.plot.progress",
    "trials_of": "nni.plot.trials",
    "tuners": "nni.plot.progress",
}

__all__ = [
    "PlottedTrial",
    "contour",
    "edf",
    "history",
    "hypervolume",
    "improvement",
    "intermediate_results",
    "parallel_coordinates",
    "parameter_importances",
    "pareto_front",
    "rank",
    "slices",
    "timeline",
    "trials_of",
    "tuners",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any export
    """Import and return a public name of the package from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
