"""BOHB: Hyperband whose new configurations come from a model of the results so far.

Source: Falkner, Klein and Hutter, BOHB: Robust and Efficient Hyperparameter Optimization at Scale,
ICML 2018 (arXiv 1807.01774), sections 3.1 and 3.2.

Departures: see `nni.hpo.advisors._density_model`.
"""

import copy
import logging
import math
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Annotated, Final

import numpy as np

from nni.hpo.advisors._density_model import ModelSettings, Results, least_results, propose
from nni.hpo.advisors._halving import Round, deepest_bracket, rounds_of
from nni.hpo.advisors._halving_advisor import BUDGET_KEY, RESERVED, HalvingAdvisor, without_budget
from nni.hpo.advisors._pcs_space import PcsProposals
from nni.hpo.advisors._proposals import FlatProposals, ProposalSpace
from nni.hpo.base import samples
from nni.hpo.json_value import JsonValue
from nni.hpo.models.acceptance import THINNED, accepted
from nni.hpo.models.feasible_rows import RowFeasibility
from nni.hpo.objectives import loss_of
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import MANY, AbsoluteFile, FloatRange, IntAbove, IntRange, OneOf

_SAFE: Final = 0.75
"""Share of the greatest probability of success from which a candidate is safe enough."""

_logger = logging.getLogger(__name__)


@algorithm(
    "BOHB",
    use_when="As Hyperband, where the final result matters more than an early one.",
    parallel="Requests outside of the open round wait for results, unless `asynchronous`.",
    documented_as="nni.algorithms.hpo.bohb_advisor.BOHB",
    nested=False,
    reserved=RESERVED,
    space_argument="config_space",
    extra="hpo",
)
class BOHB(HalvingAdvisor):
    """Hyperband whose new configurations come from Parzen estimators of good and bad results.

    The model is fitted to the results at the largest budget (fidelity) that has enough of them.
    Every trial gets its budget as `TRIAL_BUDGET`; a trial without a result ranks last.

    By default one bracket is open at a time, its rounds are completed one after the other, and a
    promoted configuration is trained from the start. Concurrent trials then wait for the end of a
    round, which `exec_mode` and `checkpoints` avoid.

    Args:
        optimize_mode: `maximize` or `minimize`.
        min_budget: smallest budget, in a unit that the trial code decides.
        max_budget: largest budget.
        eta: a round promotes the best `1 / eta` of its configurations.
        min_points_in_model: results that a budget needs before it has a model, at least the number
            of hyperparameters + 1; None for that number.
        top_n_percent: share of the results that count as good.
        num_samples: candidates per proposal.
        random_fraction: probability that a proposal is a draw from the prior.
        bandwidth_factor: factor of the kernel widths from which candidates are drawn.
        min_bandwidth: least width of a kernel, as a share of a parameter's range.
        config_space: absolute path of a space in "pcs new" form, which replaces the search space
            of the experiment; None for no such file.
        exec_mode: with `serial` a request that the open bracket cannot serve waits for results;
            with `asynchronous` configurations are promoted as soon as they are among the best so
            far, and where none can be, the next bracket is opened.
        checkpoints: whether every trial gets a folder for its checkpoint as `save_checkpoint_dir`,
            and a promoted one that of its predecessor as `load_checkpoint_dir`; code that ignores
            them trains from the start.
        seed: of all random draws; None for another one in every process.

    Raises:
        ValueError: an argument is out of its range, or the file is malformed.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
        >>> found = optimize(
        ...     lambda p: p["x"] ** 2,
        ...     space,
        ...     advisor="BOHB",
        ...     advisor_args={"max_budget": 9},
        ...     trials=60,
        ...     seed=0,
        ... )
        >>> abs(found.best_parameters["x"]) < 0.1
        True
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        optimize_mode: Mode = "maximize",
        min_budget: Annotated[int, IntRange(1, MANY)] = 1,
        max_budget: Annotated[int, IntAbove("min_budget")] = 3,
        eta: Annotated[int, IntRange(2, MANY)] = 3,
        min_points_in_model: Annotated[int | None, IntRange(1, MANY)] = None,
        top_n_percent: Annotated[int, IntRange(1, 99)] = 15,
        num_samples: Annotated[int, IntRange(1, MANY)] = 64,
        random_fraction: Annotated[float, FloatRange(0, 1)] = 0.33,
        bandwidth_factor: Annotated[float, FloatRange(0, open_low=True)] = 3.0,
        min_bandwidth: Annotated[float, FloatRange(0, open_low=True)] = 0.001,
        config_space: Annotated[str | None, AbsoluteFile()] = None,
        exec_mode: Annotated[str, OneOf("serial", "asynchronous")] = "serial",
        checkpoints: bool = False,  # noqa: FBT001, FBT002 - one of many named arguments
        seed: Seed = None,
    ) -> None:
        asynchronous = exec_mode == "asynchronous"
        super().__init__(
            optimize_mode,
            parallel=asynchronous,
            asynchronous=asynchronous,
            checkpoints=checkpoints,
        )
        self._least_budget, self._largest_budget, self._eta = min_budget, max_budget, eta
        self._settings = ModelSettings(
            min_points_in_model, top_n_percent, num_samples, bandwidth_factor, min_bandwidth
        )
        self._random_fraction = random_fraction
        self._prior = Random(seed)
        self._rng = np.random.default_rng(seed)
        self._own_space = PcsProposals.read(Path(config_space)) if config_space else None
        self._space: ProposalSpace = self._own_space or FlatProposals({})
        self._known: list[tuple[int, JsonValue, float]] = []
        self._failed: list[JsonValue] = []
        self._results: dict[int, Results] = {}
        self._success = self._new_success()

    def handle_update_search_space(self, data: JsonValue) -> None:
        """Set the search space, unless `config_space` gave it; relearn known results inside it.

        Args:
            data: the new search space, JSON.
        """
        if self._own_space is not None:
            return
        self._space = FlatProposals(data)
        known, failed = self._known, self._failed
        self._known, self._failed, self._results = [], [], {}
        self._success = self._new_success()
        for budget, configuration, loss in known:
            self.new_result(budget, configuration, loss)
        for configuration in failed:
            self.new_failure(configuration)

    def handle_import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Learn samples at their `TRIAL_BUDGET`, else at the largest budget; skip malformed ones.

        Args:
            data: samples `{"parameter": configuration, "value": final result}`.
        """
        for sample in samples(data):
            loss = loss_of(sample.value, self._mode)
            if loss is None or not isinstance(sample.parameter, dict):
                _logger.warning("BOHB skips an imported sample: %.200r", sample)
                continue
            budget = sample.parameter.get(BUDGET_KEY, self._largest_budget)
            if isinstance(budget, bool) or not isinstance(budget, int | float) or budget <= 0:
                _logger.warning("BOHB skips a sample with %s %r", BUDGET_KEY, budget)
                continue
            self.new_result(int(budget), without_budget(sample.parameter), loss)

    def rounds(self, number: int) -> tuple[Round, ...]:
        """Return the rounds of bracket `number`: 0 has most configurations; the brackets repeat."""
        return bohb_rounds(self._least_budget, self._largest_budget, self._eta, number)

    def new_configuration(self) -> JsonValue:
        """Return `get_config()`: a configuration from the model or the prior."""
        return self.get_config()

    def get_config(self) -> dict[str, JsonValue]:
        """Return a configuration for a first round: by the largest budget's model, or the prior.

        Returns:
            The configuration, without its budget.
        """
        least = least_results(self._space, self._settings)
        budgets = [budget for budget, known in self._results.items() if known.can_model(least)]
        if budgets and self._prior.random() >= self._random_fraction:
            results = self._results[max(budgets)]
            proposal = propose(self._space, results, self._settings, self._rng, self._success)
            if proposal is not None:
                return proposal
        return self._draw()

    def _draw(self) -> dict[str, JsonValue]:
        """Return a draw from the prior; if failures are modelled, one likely to succeed."""
        drawn = self._space.draw(self._prior)
        if self._success.current() is None:
            return drawn
        draws = [drawn, *(self._space.draw(self._prior) for _ in range(THINNED - 1))]
        rows = [self._space.row(one) for one in draws]
        chances = [self._success.log_probability(row.coordinates, row.options) for row in rows]
        return accepted(draws, chances, self._prior)

    def _new_success(self) -> RowFeasibility:
        frame = self._space.frame
        return RowFeasibility(len(frame.bounded), frame.counts, _SAFE)

    def new_result(self, budget: int, configuration: JsonValue, loss: float) -> None:
        """Add a configuration's loss to its budget's model; log and drop one outside the space."""
        try:
            row = self._space.row(configuration)
        except ValueError as error:
            _logger.warning("BOHB drops a result outside the search space: %s", error)
            return
        if math.isfinite(loss):
            self._success.add(row.coordinates, row.options, succeeded=True)
        self._results.setdefault(budget, Results(self._space.frame)).add(row, loss)
        self._known.append((budget, copy.deepcopy(configuration), loss))

    def new_failure(self, configuration: JsonValue) -> None:
        """Add a failed configuration to the model of success; silently drop it if outside."""
        with suppress(ValueError):  # `new_result` has told of it
            row = self._space.row(configuration)
            self._success.add(row.coordinates, row.options, succeeded=False)
            self._failed.append(copy.deepcopy(configuration))


def bohb_rounds(smallest: int, largest: int, eta: int, number: int) -> tuple[Round, ...]:
    """Return the rounds of BOHB's bracket `number`, in cycles; the first size is rounded up.

    Args:
        smallest: least budget.
        largest: greatest budget.
        eta: a round keeps the best `1 / eta`.
        number: of the bracket, counting from 0 without end.
    """
    deepest = deepest_bracket(smallest, largest, eta)
    s = deepest - number % (deepest + 1)
    size = -(-(deepest + 1) * eta**s // (s + 1))  # rounded up
    return rounds_of(size, largest / eta**s, eta, s + 1)
