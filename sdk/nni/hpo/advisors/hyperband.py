"""Hyperband: successive halving with several trade-offs of configurations against budget.

Source: Li et al., Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization, arXiv
1603.06560, algorithm 1.

Departures: bracket sizes are those of the paper's first version, `floor((s_max + 1) / (s + 1)) *
eta**s`.
"""

from random import Random
from typing import Annotated

from nni.hpo.advisors._halving import Round, deepest_bracket, rounds_of
from nni.hpo.advisors._halving_advisor import RESERVED, HalvingAdvisor, flat_space
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import MANY, IntRange, OneOf
from nni.hpo.space.domains import Space


@algorithm(
    "Hyperband",
    use_when="A large space, and trials whose early results say much about the final ones.",
    parallel="With `parallelism` a new bracket is opened; with `serial` requests wait for results.",
    documented_as="nni.algorithms.hpo.hyperband_advisor.Hyperband",
    nested=False,
    reserved=RESERVED,
    imports=False,
)
class Hyperband(HalvingAdvisor):
    """Successive halving of random configurations, in brackets of increasing first budgets.

    A trial gets its budget (fidelity) as `TRIAL_BUDGET`. A round runs its configurations at one
    budget and promotes the best `1 / eta` of them to the next. Brackets follow one another from the
    one with most configurations to the one in which all get the whole budget, and then again.

    Args:
        R: largest budget of one configuration, in a unit that the trial code decides.
        eta: a round promotes the best `1 / eta` of its configurations.
        optimize_mode: `maximize` or `minimize`.
        exec_mode: with `parallelism` a request that the open brackets cannot serve opens the next
            one; with `serial` it waits until the only open one ends.
        seed: of all random draws; None for another one in every process.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
        >>> found = optimize(
        ...     lambda p: p["x"] ** 2 + 1 / p["TRIAL_BUDGET"],
        ...     space,
        ...     advisor="Hyperband",
        ...     advisor_args={"R": 9},
        ...     trials=22,
        ...     seed=0,
        ... )
        >>> sorted({trial.parameters["TRIAL_BUDGET"] for trial in found.trials})
        [1, 3, 9]
    """

    def __init__(
        self,
        R: Annotated[int, IntRange(1, MANY)] = 60,
        eta: Annotated[int, IntRange(2, MANY)] = 3,
        optimize_mode: Mode = "maximize",
        exec_mode: Annotated[str, OneOf("serial", "parallelism")] = "parallelism",
        seed: Seed = None,
    ) -> None:
        super().__init__(optimize_mode, parallel=exec_mode == "parallelism")
        self._largest = R
        self._eta = eta
        self._rng = Random(seed)
        self._space = Space(())

    def handle_update_search_space(self, data: JsonValue) -> None:
        """Draw from a new space from now on; configurations in brackets stay.

        Args:
            data: the new search space, JSON.
        """
        self._space = flat_space(data, "Hyperband")

    def rounds(self, number: int) -> tuple[Round, ...]:
        """Return the rounds of bracket `number`: 0 has most configurations; the brackets repeat."""
        return hyperband_rounds(self._largest, self._eta, number)

    def new_configuration(self) -> JsonValue:
        """Draw a configuration at random from the search space, for a bracket's first round."""
        return self._space.draw(self._rng)


def hyperband_rounds(largest: int, eta: int, number: int) -> tuple[Round, ...]:
    """Return the rounds of Hyperband's bracket `number`, in cycles; the first size is rounded down.

    Args:
        largest: budget of one configuration at most.
        eta: a round keeps the best `1 / eta`.
        number: of the bracket, counting from 0 without end.
    """
    deepest = deepest_bracket(1, largest, eta)
    s = deepest - number % (deepest + 1)
    size = (deepest + 1) // (s + 1) * eta**s
    return rounds_of(size, largest / eta**s, eta, s + 1)
