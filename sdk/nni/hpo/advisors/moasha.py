"""Asynchronous successive halving for several objectives.

Source: Schmucker et al., Multi-objective Asynchronous Successive Halving, 2021, with the selection
of NSGA-II: fronts first, and within a front those with most room around them.
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
    """Promotes the configurations that are not beaten in every objective; see `ASHA`.

    A result is a dict with a number for each metric. Configurations are draws from the prior.

    Args:
        optimize_mode: metric to mode, such as `{"accuracy": "maximize", "latency": "minimize"}`.
        min_budget: of the first rung, in a unit that the trial code decides, >= 1.
        max_budget: of the last rung.
        eta: one of this many goes on; the factor between the budgets of two rungs, >= 2.
        brackets: how many there are; each begins one rung higher than the one before.
        mode: `promotion` or `stopping`.
        seed: of all draws; None for different ones in every process.
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
