"""CPU time of each chart of 10,000 trials, drawn with plotly and written as JSON.

./dev bench plots
"""

import random
import time
from collections.abc import Callable
from typing import Any

import nni.plot
from nni.plot import PlottedTrial
from tests.benchmarks.figures import Figure, at_most, print_figures

TRIALS = 10_000
PARAMETERS = 8
STEPS = 20
LIMIT_S = 2.0
OBJECTIVES = {"default": "minimize", "size": "minimize"}


def trials() -> list[PlottedTrial]:
    """Return trials with curves, times and two results."""
    drawn = random.Random(0)
    return [
        PlottedTrial(
            number,
            {f"x{index}": drawn.random() for index in range(PARAMETERS)},
            {"default": drawn.random(), "size": drawn.random()},
            tuple(drawn.random() for _ in range(STEPS)),
            started_s=float(number),
            ended_s=number + 5.0,
            machine="machine",
        )
        for number in range(TRIALS)
    ]


def main() -> None:
    """Measure each chart once, and print the table."""
    drawn = trials()
    charts: dict[str, Callable[[], Any]] = {
        "history": lambda: nni.plot.history(drawn),
        "intermediate_results": lambda: nni.plot.intermediate_results(drawn),
        "edf": lambda: nni.plot.edf(drawn),
        "timeline": lambda: nni.plot.timeline(drawn),
        "slices": lambda: nni.plot.slices(drawn),
        "contour": lambda: nni.plot.contour(drawn, "x0", "x1"),
        "parallel_coordinates": lambda: nni.plot.parallel_coordinates(drawn),
        "rank": lambda: nni.plot.rank(drawn, "x0", "x1"),
        "improvement": lambda: nni.plot.improvement(drawn),
        "parameter_importances": lambda: nni.plot.parameter_importances(drawn),
        "pareto_front": lambda: nni.plot.pareto_front(drawn, OBJECTIVES),
        "hypervolume": lambda: nni.plot.hypervolume(drawn, OBJECTIVES),
    }
    nni.plot.history(drawn[:1])  # imports
    figures: list[Figure] = []
    for name, draw in charts.items():
        begin_s = time.process_time()
        draw().to_json()
        figures.append(at_most(name, time.process_time() - begin_s, LIMIT_S, " s", "CPU time"))
    print_figures(figures)


if __name__ == "__main__":
    main()
