"""Asynchronous successive halving: promotion without waiting for complete rounds.

Source: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020; stopping
instead of promoting: Liaw et al., Tune, 2018, and section 3 of the former.
"""

import copy
import json
import math
from dataclasses import dataclass
from random import Random
from typing import Annotated, Final

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.advisors._halving_advisor import BUDGET_KEY, RESERVED
from nni.hpo.advisors._rungs import Losses, Order, Rung, best_first, budgets_of
from nni.hpo.advisors._searcher import (
    RANDOM,
    PriorSearcher,
    Searcher,
    TunerSearcher,
    check_searcher,
)
from nni.hpo.checkpoint_folders import LOAD_KEY, SAVE_KEY, default_root
from nni.hpo.commands import CommandType, MetricType
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives, objectives_of
from nni.hpo.registry.arguments import Seed
from nni.hpo.registry.declaration import algorithm
from nni.hpo.registry.rules import MANY, IntAbove, IntRange, OneOf
from nni.hpo.space.domains import Space
from nni.hpo.space.parser import parse_space

MODES: Final = ("promotion", "stopping")
_SEVERAL: Final = "use MOASHA for several objectives"


@dataclass(slots=True)
class _Run:
    """Running trial: its configuration, bracket, the rung it works towards, final losses if any."""

    name: int
    """Number of its configuration, from 0."""
    bracket: int
    rung: int
    """Rung whose budget the trial works towards."""
    losses: Losses | None = None
    """Final result; None before it."""


class AsynchronousHalving(MsgDispatcherBase):
    """Base of ASHA and MOASHA: asynchronous successive halving with any order of results.

    Args:
        objectives: metrics with their modes.
        order: ranking of results.
        min_budget: budget of the first rung of the first bracket, >= 1.
        max_budget: budget of the last rung, >= `min_budget`.
        eta: one of `eta` configurations is promoted, to a budget `eta` times as large; >= 2.
        brackets: number of brackets, >= 1; each leaves out one more rung at the bottom.
        mode: `promotion` or `stopping`.
        searcher: name of the tuner that proposes configurations.
        seed: of all random draws; None for another one in every process.
    """

    algorithm = "ASHA"

    def __init__(  # noqa: PLR0913 - documented arguments
        self,
        objectives: Objectives,
        order: Order,
        *,
        min_budget: int,
        max_budget: int,
        eta: int,
        brackets: int,
        mode: str,
        searcher: str,
        seed: int | None,
    ) -> None:
        super().__init__()
        self._objectives = objectives
        self._promotes = mode == "promotion"
        self._searcher_name = searcher
        self._rng = Random(seed)
        possible = len(budgets_of(min_budget, max_budget, eta, 0))
        self._budgets = [
            budgets_of(min_budget, max_budget, eta, skipped)
            for skipped in range(min(brackets, possible))
        ]
        self._weights = [
            eta ** (possible - skipped) / (possible - skipped)
            for skipped in range(len(self._budgets))
        ]
        self._rungs = [[Rung(eta, order) for _ in budgets] for budgets in self._budgets]
        self._searcher: Searcher = PriorSearcher(Space(()), self._rng)
        self._configurations: list[JsonValue] = []
        self._brackets: list[int] = []
        self._runs: dict[str, _Run] = {}
        self._released: list[str] = []

    def handle_update_search_space(self, data: JsonValue) -> None:
        """Draw from a new space from now on; configurations in rungs stay.

        Args:
            data: the new search space, JSON.
        """
        space = parse_space(data, algorithm=self.algorithm, reserved=RESERVED, priors=False)
        if self._searcher_name == RANDOM:
            self._searcher = PriorSearcher(space, self._rng)
        else:
            self._searcher = TunerSearcher(self._searcher_name, data, space, self._rng)

    def handle_request_trial_jobs(self, data: int) -> None:
        """Start that many trials, promoted ones first; send `NoMoreTrialJobs` if none is left.

        Args:
            data: number of trials to start.
        """
        for _ in range(data):
            run = self._promoted() or self._begun()
            if run is None:
                self.send(CommandType.NoMoreTrialJobs, "")
                return
            self._start(run)

    def handle_report_metric_data(self, data: dict[str, JsonValue]) -> None:
        """Keep the first final losses; with `stopping`, rank intermediate ones, perhaps stop."""
        kind = data["type"]
        if kind not in {MetricType.PERIODICAL, MetricType.FINAL}:
            raise ValueError(
                f"type of a metric must be {MetricType.PERIODICAL} or {MetricType.FINAL}, "
                f"got {kind!r}"
            )
        run = self._runs.get(data["parameter_id"])
        losses = self._objectives.losses(data["value"])
        if run is None or losses is None:
            return
        if kind == MetricType.FINAL:
            run.losses = run.losses or losses
        elif not self._promotes:
            self._reached(run, data["sequence"] + 1, losses, data["trial_job_id"])

    def handle_trial_end(self, data: dict[str, JsonValue]) -> None:
        """Enter an ended trial's final losses in its rung; with promotion infinite ones if none."""
        run = self._runs.pop(json.loads(data["hyper_params"])["parameter_id"], None)
        if run is None:
            return  # a duplicate report
        losses = run.losses or tuple(math.inf for _ in self._objectives.items)
        if self._promotes:
            self._record(run, losses)
        elif run.losses is not None and run.rung < len(self._budgets[run.bracket]):
            run.rung = len(self._budgets[run.bracket]) - 1  # it ended on its own, with a result
            self._record(run, losses)

    def released_checkpoints(self) -> list[str]:
        """Return folders released since the last call, which no later trial loads.

        Returns:
            Absolute paths; the next call does not repeat them.
        """
        released, self._released = self._released, []
        return released

    def _promoted(self) -> _Run | None:
        """Promote the next configuration, highest rung first; return its new trial or None."""
        if not self._promotes:
            return None
        for bracket, rungs in enumerate(self._rungs):
            for rung in range(len(rungs) - 2, -1, -1):
                name = rungs[rung].promote()
                if name is not None:
                    return _Run(name, bracket, rung + 1)
        return None

    def _begun(self) -> _Run | None:
        """Draw a configuration and a bracket; return the first trial, None if none is left."""
        configuration = self._searcher.draw()
        if configuration is None:
            return None
        places = range(len(self._budgets))
        (bracket,) = self._rng.choices(places, self._weights) if len(places) > 1 else (0,)
        self._configurations.append(configuration)
        self._brackets.append(bracket)
        return _Run(len(self._configurations) - 1, bracket, 0)

    def _start(self, run: _Run) -> None:
        job = f"{run.name}_{run.rung}"
        self._runs[job] = run
        budgets = self._budgets[run.bracket]
        parameters = copy.deepcopy(self._configurations[run.name])
        if self._promotes:
            parameters[BUDGET_KEY] = budgets[run.rung]
            parameters[SAVE_KEY] = self._folder(run.name, run.rung)
            if run.rung:
                parameters[LOAD_KEY] = self._folder(run.name, run.rung - 1)
        else:
            parameters[BUDGET_KEY] = budgets[-1]
        self.send(CommandType.NewTrialJob, {"parameter_id": job, "parameters": parameters})

    def _reached(self, run: _Run, budget: int, losses: Losses, trial: str) -> None:
        """Record an intermediate result that completes a rung; stop the trial if it ranks low."""
        budgets = self._budgets[run.bracket]
        if run.rung >= len(budgets) or budget < budgets[run.rung]:
            return
        rung = self._rungs[run.bracket][run.rung]
        self._record(run, losses)
        last = run.rung == len(budgets) - 1
        run.rung += 1
        if not last and not rung.goes_on(run.name):
            run.rung = len(budgets)
            self.send(CommandType.KillTrialJob, trial)

    def _record(self, run: _Run, losses: Losses) -> None:
        self._rungs[run.bracket][run.rung].add(run.name, losses)
        budget = self._budgets[run.bracket][run.rung]
        self._searcher.learn(budget, self._configurations[run.name], losses[0])
        if self._promotes:
            self._release(run, last=run.rung == len(self._budgets[run.bracket]) - 1)

    def _release(self, run: _Run, *, last: bool) -> None:
        """Release the checkpoint folder a trial started from; its own one too if `last`."""
        if run.rung:
            self._released.append(self._folder(run.name, run.rung - 1))
        if last:
            self._released.append(self._folder(run.name, run.rung))

    def _folder(self, name: int, rung: int) -> str:
        return str(default_root().expanduser() / f"{name}_{rung}")


@algorithm(
    "ASHA",
    use_when="Many trials at a time, whose early results say much about the final ones.",
    parallel="All are served at once; none waits for results.",
    reserved=RESERVED,
    argument_check=check_searcher,
    imports=False,
)
class ASHA(AsynchronousHalving):
    """Asynchronous successive halving: promotes the best `1 / eta` of a rung without waiting.

    A rung holds the results at one budget (fidelity). With `promotion` a trial ends at its
    `TRIAL_BUDGET`; a promoted configuration gets a new trial with a larger `TRIAL_BUDGET`, whose
    `load_checkpoint_dir` is the `save_checkpoint_dir` of its predecessor. Code that ignores the
    folders trains from the start. With `stopping` every trial gets the largest budget and is
    stopped at the first rung where it is not among the best; its n-th intermediate result counts as
    the result at budget n.

    Args:
        optimize_mode: `maximize` or `minimize`.
        min_budget: budget of the first rung, in a unit that the trial code decides.
        max_budget: budget of the last rung.
        eta: one of `eta` configurations is promoted, to a budget `eta` times as large.
        brackets: number of brackets; each begins one rung higher than its predecessor.
        mode: `promotion` or `stopping`.
        searcher: name of the tuner that proposes configurations; `Random` draws from the prior.
        seed: of all random draws; None for another one in every process.

    Examples:
        >>> from nni.hpo import optimize
        >>> space = {"x": {"_type": "uniform", "_value": [-1, 1]}}
        >>> found = optimize(
        ...     lambda p: p["x"] ** 2 + 1 / p["TRIAL_BUDGET"],
        ...     space,
        ...     advisor="ASHA",
        ...     advisor_args={"max_budget": 9},
        ...     optimize_mode="minimize",
        ...     trials=40,
        ...     seed=0,
        ... )
        >>> found.best_parameters["TRIAL_BUDGET"]
        9
    """

    def __init__(
        self,
        optimize_mode: Annotated[str, OneOf("maximize", "minimize", hint=_SEVERAL)] = "maximize",
        min_budget: Annotated[int, IntRange(1, MANY)] = 1,
        max_budget: Annotated[int, IntAbove("min_budget", or_equal=True)] = 81,
        eta: Annotated[int, IntRange(2, MANY)] = 3,
        brackets: Annotated[int, IntRange(1, MANY)] = 1,
        mode: Annotated[str, OneOf(*MODES)] = "promotion",
        searcher: str = RANDOM,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            objectives_of(optimize_mode),
            best_first,
            min_budget=min_budget,
            max_budget=max_budget,
            eta=eta,
            brackets=brackets,
            mode=mode,
            searcher=searcher,
            seed=seed,
        )
