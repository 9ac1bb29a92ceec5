"""Bayesian search for the minimum of one loss, in a space of any types.

After an initial design, proposals maximise the acquisition function of a Gaussian process in a
trust region around the best configuration, or anywhere. When that gains nothing any more, some
proposals look for marked improvements only, and among options that were seldom tried.
Configurations on the plateau of a known result are avoided. TPE may make a share of the proposals.
A cost-aware search divides the acquisition function by the predicted run time of the trial. A
robust one measures suspiciously good configurations again, and models no outliers.

Source of the parts: see `candidates`, `search_modes`, `initial_design`, `gp_regression`,
`plateaus`.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.json_value import JsonValue
from nni.hpo.models.cost_model import CostPrediction
from nni.hpo.models.gp_model import FittedGP
from nni.hpo.models.gp_regression import Kernel
from nni.hpo.models.loss_model import LossModel
from nni.hpo.models.plateaus import KnownPlateaus, PlateauModel
from nni.hpo.models.space_prior import space_prior
from nni.hpo.models.targets import Scale
from nni.hpo.objectives import Objectives
from nni.hpo.space.domains import Space
from nni.hpo.tuners._model_based import ModelBasedTuner
from nni.hpo.tuners.bayesian.acquisition import AcquisitionFunction
from nni.hpo.tuners.bayesian.acquisition_optimizer import (
    AcquisitionOptimizer,
    LossAcquisition,
    weighted_by_success,
)
from nni.hpo.tuners.bayesian.cost_acquisition import divided_by_cost
from nni.hpo.tuners.bayesian.incumbent import believed_losses, expected_losses, loss_to_beat
from nni.hpo.tuners.bayesian.initial_design import InitialDesign
from nni.hpo.tuners.bayesian.mode_candidates import KnownResults, mode_candidates
from nni.hpo.tuners.bayesian.outcome_models import NOTABLE_NOISE
from nni.hpo.tuners.bayesian.outliers import MeasuredResults, Outliers
from nni.hpo.tuners.bayesian.prior_acquisition import weighted_by_prior
from nni.hpo.tuners.bayesian.search_budget import GPSettings, SearchBudget, search_budget
from nni.hpo.tuners.bayesian.search_modes import (
    RecentGains,
    SearchMode,
    TrustRegion,
    next_mode,
)
from nni.hpo.tuners.bayesian.tpe_proposer import TPEProposer
from nni.hpo.tuners.bayesian.trial_costs import TrialCosts

LOCAL_SHARE: Final = 0.6
"""Share of the proposals of the Gaussian process that lie in the trust region."""


class GPSearch(ModelBasedTuner[float]):
    """Search that minimises one loss with a Gaussian process, and perhaps TPE beside it.

    Args:
        algorithm: name of the tuner, for messages.
        parse: returns the space of a search space; raises ValueError for an unsupported one.
        objectives: one of them, without limits.
        acquisition: what is maximised.
        settings: of the process and the search.
        design: of the first configurations.
        tpe: makes a share of the proposals; None for no such share.
        seed: of all draws; None for different ones in every process.
    """

    prepares = True

    def __init__(
        self,
        algorithm: str,
        parse: Callable[[JsonValue], Space],
        objectives: Objectives,
        acquisition: AcquisitionFunction,
        settings: GPSettings,
        *,
        design: InitialDesign,
        tpe: TPEProposer | None = None,
        seed: int | None,
    ) -> None:
        super().__init__(algorithm, parse, self._loss, seed)
        self._objectives = objectives
        self._acquisition = acquisition
        self._settings = settings
        self._design = design
        self._tpe = tpe
        self._proposals: dict[int, tuple[SearchMode, float]] = {}
        """Mode and region size of the running trials."""
        self._mode: SearchMode = "design"
        budget_s = settings.cost_budget_s
        self._costs = TrialCosts(self._space, budget_s) if settings.cost_aware else None
        self._outliers: Outliers | None = None
        self._start_over()

    @property
    def learns_durations(self) -> bool:
        """True if the search is cost-aware, so that it learns the run times of trials."""
        return self._costs is not None

    @property
    def is_robust(self) -> bool:
        """True if suspicious results are measured again, and outliers left out."""
        return self._outliers is not None

    @property
    def costs(self) -> TrialCosts | None:
        """Run times with their model and time budget; None unless the search is cost-aware."""
        return self._costs

    @property
    def space(self) -> EncodedSpace:
        """The space that is searched."""
        return self._space

    @property
    def design_size(self) -> int:
        """Number of initial configurations."""
        return self._design.size

    @property
    def tpe_share(self) -> float:
        """Share of the proposals after the initial design that TPE makes; 0.0 without TPE."""
        return 0.0 if self._tpe is None else self._tpe.share(self._space)

    @property
    def scale(self) -> Scale:
        """Scale of the losses, as chosen last."""
        return self._model.scale

    @property
    def has_plateaus(self) -> bool:
        """True if the last fit found plateaus in the results."""
        return self._plateaus.found

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the space of this search and of its TPE, and reset what depends on it."""
        if self._tpe is not None:
            self._tpe.update_search_space(search_space)
        super().update_search_space(search_space)
        self._start_over()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """Return a configuration; remember the mode and region size that proposed it."""
        configuration = super().generate_parameters(parameter_id, **kwargs)
        self._proposals[parameter_id] = (self._mode, self._region_size())
        return configuration

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Learn a result; adapt the trust region by whether it improved the incumbent."""
        best, count = self._least_loss(), len(self._losses)
        super().receive_trial_result(parameter_id, parameters, value, **kwargs)
        if self._costs is not None:
            self._costs.complete(parameter_id, parameters)
        self._adapt(parameter_id, best, count)

    def _adapt(self, parameter_id: int, best: float, count: int) -> None:
        """Record a model proposal's gain on the incumbent; adapt the trust region if it was local.

        Args:
            parameter_id: of the trial.
            best: least loss before its end.
            count: number of losses before its end.
        """
        mode, size = self._proposals.pop(parameter_id, ("design", 0.0))
        if len(self._losses) == count or mode in {"design", "density", "repeat"}:
            return
        gain = max(0.0, best - self._losses[-1])
        self._progress.gains.append(gain)
        if mode == "local":
            self._region.record(size, improved=gain > 0)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Process the end of a trial; adapt the trust region if an estimated loss was learnt."""
        best, count = self._least_loss(), len(self._losses)
        super().trial_end(parameter_id, success, **kwargs)
        if self._costs is not None:
            self._costs.end(parameter_id, kwargs.get("duration_s"), success=success)
            self._prepared = None  # it does not know the run time
        self._adapt(parameter_id, best, count)

    def import_durations(self, durations: list[dict[str, JsonValue]]) -> None:
        """Learn run times of earlier trials; ignore them unless the search is cost-aware."""
        if self._costs is not None:
            self._costs.learn_all(durations)
            self._prepared = None

    def state(self) -> dict[str, JsonValue]:
        """Return the search's state as JSON, with run times if the search is cost-aware."""
        return super().state() | ({} if self._costs is None else {"costs": self._costs.state()})

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore the search from `state`, with run times if the search is cost-aware."""
        super().load_state(state)
        if self._costs is not None:
            self._costs.load_state(state["costs"])

    def expected_results(self, configurations: list[JsonValue]) -> list[float] | None:
        """Return the posterior means of results; None unless the fitted noise is notable.

        Args:
            configurations: of trials with results, in the space.

        Returns:
            A number per configuration; see `expected_losses`.
        """
        if self._model.gp.hyperparameters is None or not self._is_noisy():
            return None
        known, losses = self._modelled()
        vectors = np.array([self._space.encode(one) for one in configurations])
        expected = expected_losses(
            self._model.gp.kernel,
            self._space.features(known),
            losses,
            self._space.features(vectors),
        )
        sign = -1.0 if self._objectives.items[0].mode == "maximize" else 1.0
        return None if expected is None else [sign * loss for loss in expected]

    def _loss(self, value: JsonValue) -> float | None:
        losses = self._objectives.losses(value)
        return None if losses is None else losses[0]

    def _add(self, configuration: JsonValue, placed: Mapping[str, JsonValue], loss: float) -> None:
        super()._add(configuration, placed, loss)
        if self._tpe is not None:
            self._tpe.learn(configuration, placed, loss)

    def _add_failure(self, configuration: JsonValue, placed: Mapping[str, JsonValue]) -> None:
        super()._add_failure(configuration, placed)
        if self._tpe is not None:
            self._tpe.learn_failure(configuration, placed)

    def _propose(self) -> Floats:
        if not self._design.is_complete(len(self._losses)):
            self._mode = "design"
            vector = self._design.next_vector()
            allowed = vector is not None and self._space.allows(vector)
            return vector if vector is not None and allowed else self._random_vector()
        repeated = self._suspect()
        if repeated is not None:
            self._mode = "repeat"
            return repeated
        gained = min(self._losses[: self._design.size]) - self._least_loss()
        self._mode = next_mode(
            self._rng,
            density_share=self.tpe_share,
            local_share=LOCAL_SHARE,
            stale=self._progress.stale(gained),
            has_options=not self._space.ordered.all(),
        )
        plateaus = self._plateaus.update(self._vectors, self._losses, list(self._running.values()))
        found = None
        if self._mode == "density" and self._tpe is not None:
            found = self._tpe.propose_by_cost(
                self._space, self._taken(), plateaus, self._predicted_cost(), self._prior
            )
            if found is None:
                self._mode = "global"
        if found is None:
            found = self._most_promising(plateaus)
        return self._random_vector() if found is None else found

    def _predicted_cost(self) -> CostPrediction | None:
        """Return the predicted cost of a trial; None unless it is known and counts."""
        return None if self._costs is None else self._costs.prediction(len(self._losses))

    def _most_promising(self, plateaus: KnownPlateaus | None) -> Floats | None:
        """Return the vector of greatest acquisition in the current mode; None if none is left."""
        space, settings = self._space, self._settings
        vectors, losses = self._modelled()
        fitted = self._model.update(space.features(vectors), losses)
        pending = space.features(self._running_vectors())
        posterior = self._model.gp.with_pending(fitted, pending)
        budget = search_budget(
            len(fitted.inputs), settings.time_limit_s, settings.most_samples, settings.most_climbs
        )
        incumbent = loss_to_beat(fitted, posterior, pending, self._mode, noisy=self._is_noisy())
        loss_acquisition = LossAcquisition(space, posterior, self._acquisition, incumbent, plateaus)
        acquisition = weighted_by_success(space, loss_acquisition, self._feasibility())
        acquisition = weighted_by_prior(acquisition, self._user_prior, len(self._losses))
        acquisition = divided_by_cost(space, acquisition, self._predicted_cost())
        optimizer = AcquisitionOptimizer(space, acquisition, self._taken(), budget)
        listed = space.all_vectors(budget.samples)
        if listed is not None:
            return optimizer.best_of(listed)
        return self._best_of_mode(optimizer, vectors[fitted.kept], fitted, plateaus, budget)

    def _best_of_mode(
        self,
        optimizer: AcquisitionOptimizer,
        vectors: Floats,
        fitted: FittedGP,
        plateaus: KnownPlateaus | None,
        budget: SearchBudget,
    ) -> Floats | None:
        """Return the best vector found from the current mode's candidates; None if none is left."""
        space = self._space
        known = KnownResults(
            vectors,
            believed_losses(fitted, noisy=self.is_robust and self._is_noisy()),
            self._model.gp.lengthscales(),
            self._region_size(),
            plateaus.reach() if plateaus else np.zeros(len(space)),
        )
        candidates, region = mode_candidates(
            space, self._mode, known, budget.samples, self._rng, self._user_prior
        )
        candidates = space.allowed(candidates)
        if not len(candidates):
            return None
        return optimizer.best_from(candidates, region, discrete=self._mode != "option")

    def _modelled(self) -> tuple[Floats, Floats]:
        """Return vectors `(n, d)` and losses `(n,)` of the results that are no outliers."""
        vectors, losses = np.array(self._vectors), np.array(self._losses)
        if self._outliers is None:
            return vectors, losses
        credible = self._outliers.credible(len(losses))
        return vectors[credible], losses[credible]

    def _suspect(self) -> Floats | None:
        """Find outliers; return the best vector if it is to be measured again, else None."""
        if self._outliers is None:
            return None
        vectors = np.array(self._vectors)
        results = MeasuredResults(vectors, self._space.features(vectors), np.array(self._losses))
        return self._outliers.suspect(results, self._running_keys(), self._model.gp)

    def _least_loss(self) -> float:
        """Return the least loss that is no outlier; infinity without any."""
        if self._outliers is None:
            return min(self._losses, default=np.inf)
        return float(self._modelled()[1].min(initial=np.inf))

    def _is_noisy(self) -> bool:
        """Return whether the fitted noise variance is above 0.001 of the output scale."""
        return self._model.gp.noise_variance() > NOTABLE_NOISE

    def _region_size(self) -> float:
        """Return the trust region's size for the next proposal, as if running ones had failed."""
        return self._region.size_with_pending(
            size for mode, size in self._proposals.values() if mode == "local"
        )

    def _start_over(self) -> None:
        """Make new models, region and initial design for the current space; keep run times."""
        settings = self._settings
        self._model = LossModel(
            Kernel(self._space.feature_axes, settings.matern, settings.least_noise)
        )
        self._plateaus = PlateauModel(self._space.ordered)
        self._region = TrustRegion(len(self._space))
        self._progress = RecentGains()
        self._design.reset(self._space, self._rng)
        self._user_prior = space_prior(self._space)
        self._outliers = Outliers() if settings.robust else None
        if self._costs is not None:
            self._costs = self._costs.moved_to(self._space)

    def _reset_model(self) -> None:
        self._model.reset()
        self._plateaus.reset()
        if self._tpe is not None:
            self._tpe.reset()

    def _model_state(self) -> JsonValue:
        return {
            "model": self._model.state(),
            "region": self._region.state(),
            "gains": list(self._progress.gains),
            "ways": [[number, *proposal] for number, proposal in self._proposals.items()],
            **self._design.state(),
            **({} if self._tpe is None else {"density": self._tpe.state()}),
            **({} if self._costs is None else {"cost_model": self._costs.model_state()}),
            **({} if self._outliers is None else {"outliers": self._outliers.state()}),
        }

    def _load_model_state(self, state: JsonValue) -> None:
        self._model.load_state(state["model"])
        self._region.load_state(state["region"])
        self._progress = RecentGains()
        self._progress.gains.extend(state["gains"])
        self._proposals = {number: (mode, size) for number, mode, size in state["ways"]}
        self._design.load_state(state)
        if self._tpe is not None:
            self._tpe.load_state(state["density"])
        if self._costs is not None:
            self._costs.load_model_state(state["cost_model"])
        if self._outliers is not None:
            self._outliers.load_state(state["outliers"])
