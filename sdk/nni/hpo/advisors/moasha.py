"""Asynchronous successive halving for several objectives.

Source: Schmucker et al., Multi-objective Asynchronous Successive Halving, 2021, with the selection
of NSGA-II: non-dominated sorting, and the crowding distance within a front.
"""

from collections.abc import Mapping
from typing import Annotated

from nni.hpo.advisors._halving_advisor import RESERVED
from nni.hpo.advisors._rungs import front_first
from nni.hpo.advisors._searcher import RANDOM
from nni.hpo.advisors.asha import MODES, AsynchronousHalving
from nni.hpo.objectives import objectives_of
from nni.hpo.registry.arguments import Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import MANY, IntAbove, IntRange, Modes, OneOf


@algorithm(
    "MOASHA",
    use_when="As ASHA, with several objectives.",
    parallel="All are served at once; none waits for results.",
    reserved=RESERVED,
    imports=False,
)
class MOASHA(AsynchronousHalving):
    """Asynchronous successive halving for several objectives, ranked as in NSGA-II.

    See `ASHA` for rungs, promotion and stopping. A result is a dict with a number for each metric.
    Configurations are draws from the prior.

    Args:
        optimize_mode: metric to mode, such as `{"accuracy": "maximize", "latency": "minimize"}`.
        min_budget: budget of the first rung, in a unit that the trial code decides.
        max_budget: budget of the last rung.
        eta: one of `eta` configurations is promoted, to a budget `eta` times as large.
        brackets: number of brackets; each begins one rung higher than its predecessor.
        mode: `promotion` or `stopping`.
        seed: of all random draws; None for another one in every process.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [0, 1]}}
        >>> found = optimize(
        ...     lambda p: {"time": p["x"], "error": 1 - p["x"] ** 2},
        ...     space,
        ...     advisor="MOASHA",
        ...     advisor_args={"max_budget": 3},
        ...     optimize_mode={"time": "minimize", "error": "minimize"},
        ...     trials=20,
        ...     seed=0,
        ... )
        >>> len(found.pareto_front) > 1
        True
    """

    algorithm = "MOASHA"

    def __init__(
        self,
        optimize_mode: Annotated[str | Mapping[str, str], Modes()] = "maximize",
        min_budget: Annotated[int, IntRange(1, MANY)] = 1,
        max_budget: Annotated[int, IntAbove("min_budget", or_equal=True)] = 81,
        eta: Annotated[int, IntRange(2, MANY)] = 3,
        brackets: Annotated[int, IntRange(1, MANY)] = 1,
        mode: Annotated[str, OneOf(*MODES)] = "promotion",
        seed: Seed = None,
    ) -> None:
        super().__init__(
            objectives_of(optimize_mode),
            front_first,
            min_budget=min_budget,
            max_budget=max_budget,
            eta=eta,
            brackets=brackets,
            mode=mode,
            searcher=RANDOM,
            seed=seed,
        )
