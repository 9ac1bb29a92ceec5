"""Hyperband: successive halving at several trade-offs between how many and how long.

Source: Li et al., Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization, arXiv
1603.06560, algorithm 1.

Departures: bracket sizes are those of the paper's first version, `floor((s_max + 1) / (s + 1)) *
eta**s`.
"""

from random import Random
from typing import Final

from nni.hpo.advisors._halving import Round, deepest_bracket, rounds_of
from nni.hpo.advisors._halving_advisor import HalvingAdvisor, flat_space
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.validation import check_count
from nni.hpo.space.domains import Space

EXEC_MODES: Final = ("serial", "parallelism")


class Hyperband(HalvingAdvisor):
    """Gives random configurations a small `TRIAL_BUDGET` and the best of them a larger one.

    Brackets follow one another from the one with most configurations to the one in which all get
    the whole budget, and then again, without end.

    Args:
        R: largest budget of one configuration, in a unit that the trial code decides, >= 1.
        eta: a round keeps the best `1 / eta` of its configurations, >= 2.
        optimize_mode: `maximize` or `minimize`.
        exec_mode: with `parallelism` a request that the open brackets cannot serve opens the next
            one; with `serial` it waits until the only open one ends.
        seed: of all draws; None for different ones in every process.
    """

    def __init__(
        self,
        R: int = 60,
        eta: int = 3,
        optimize_mode: str = "maximize",
        exec_mode: str = "parallelism",
        seed: int | None = None,
    ) -> None:
        check_count("R", R, least=1)
        check_count("eta", eta, least=2)
        if exec_mode not in EXEC_MODES:
            raise ValueError(f"exec_mode must be one of {', '.join(EXEC_MODES)}; got {exec_mode!r}")
        super().__init__(optimize_mode, parallel=exec_mode == "parallelism")
        self._largest = R
        self._eta = eta
        self._rng = Random(seed)
        self._space = Space(())

    def handle_update_search_space(self, data: JsonValue) -> None:
        """See the base. Configurations that were drawn before stay in their brackets."""
        self._space = flat_space(data, "Hyperband")

    def rounds(self, number: int) -> tuple[Round, ...]:
        """See the base."""
        return hyperband_rounds(self._largest, self._eta, number)

    def new_configuration(self) -> JsonValue:
        """See the base."""
        return self._space.draw(self._rng)


def hyperband_rounds(largest: int, eta: int, number: int) -> tuple[Round, ...]:
    """Return the rounds of one bracket.

    Args:
        largest: budget of one configuration at most.
        eta: a round keeps the best `1 / eta`.
        number: of the bracket, counting from 0 without end.
    """
    deepest = deepest_bracket(1, largest, eta)
    s = deepest - number % (deepest + 1)
    size = (deepest + 1) // (s + 1) * eta**s
    return rounds_of(size, largest / eta**s, eta, s + 1)


def check_space(search_space: object) -> None:
    """Raise ValueError for a space that the advisor refuses."""
    flat_space(search_space, "Hyperband")
