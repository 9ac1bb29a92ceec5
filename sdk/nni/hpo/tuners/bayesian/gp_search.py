"""Lowering one loss with a Gaussian process over the whole tree of parameters.

Proposals lie near the best point, within a region that grows with success and shrinks without, or
anywhere. When the process finds nothing any more, it looks for marked improvements only, and into
options that were seldom tried. What lies on the plateau of a known point is passed over
(`plateaus`).

Source of the parts: see `tree_cube`, `tree_search`, `arms` and `blended_process`.
"""

from abc import abstractmethod
from typing import ClassVar, Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import TreeCube
from nni.hpo.encoding.unit_cube import best_free
from nni.hpo.json_value import JsonValue
from nni.hpo.models.gp_model import Belief
from nni.hpo.models.gp_regression import Blend, BlendedProcess
from nni.hpo.models.plateaus import Familiar, Plateaus
from nni.hpo.models.tree_model import TreeModel
from nni.hpo.objectives import Objectives
from nni.hpo.tuners._model_based import PointTuner
from nni.hpo.tuners.bayesian.acquisition import Acquisition
from nni.hpo.tuners.bayesian.acquisition_optimizer import (
    Outlook,
    around,
    everywhere,
    whole,
    with_option,
    within,
)
from nni.hpo.tuners.bayesian.acquisition_search import search_effort
from nni.hpo.tuners.bayesian.process_settings import ProcessSettings
from nni.hpo.tuners.bayesian.search_modes import (
    Arm,
    Progress,
    TrustRegion,
    next_arm,
    option_weights,
)

LOCAL_SHARE: Final = 0.6
"""Of the proposals of the process, those near the best point."""

_GOOD: Final = 5
"""Best results near which candidates are drawn."""
_MARGIN: Final = 0.05
"""Improvement that exploring asks for, relative to the distance from the median to the best."""
_RUNNING_MARGIN: Final = 0.001
"""The same on what running trials are about to find: without it all of them would go to the same
hollow."""
_NOTABLE_NOISE: Final = 1e-3
"""Of the process, relative to its variance, from which single results are not to be trusted."""


class ProcessSearch(PointTuner[TreeCube, float]):
    """Lowers one loss; a subclass says in which spaces, and how it begins.

    Args:
        objectives: one of them, without limits.
        acquisition: what is maximised.
        settings: of the process and the search.
        seed: of all draws; None for different ones in every process.
    """

    prepares: ClassVar[bool] = True

    def __init__(
        self,
        objectives: Objectives,
        acquisition: Acquisition,
        settings: ProcessSettings,
        seed: int | None,
    ) -> None:
        super().__init__(seed)
        self._objectives = objectives
        self._acquisition = acquisition
        self._settings = settings
        self._ways: dict[int, tuple[Arm, float]] = {}
        self._arm: Arm = "design"
        self._start_over()

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base."""
        super().update_search_space(search_space)
        self._start_over()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """See the base."""
        configuration = super().generate_parameters(parameter_id, **kwargs)
        self._ways[parameter_id] = (self._arm, self._region_size())
        return configuration

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """See the base."""
        best, count = min(self._losses, default=np.inf), len(self._losses)
        super().receive_trial_result(parameter_id, parameters, value, **kwargs)
        arm, size = self._ways.pop(parameter_id, ("design", 0.0))
        if len(self._losses) == count or arm in {"design", "density"}:
            return
        gain = max(0.0, best - self._losses[-1])
        self._progress.gains.append(gain)
        if arm == "local":
            self._region.told(size, improved=gain > 0)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """See the base."""
        super().trial_end(parameter_id, success, **kwargs)
        self._ways.pop(parameter_id, None)

    @abstractmethod
    def _first_point(self) -> Floats | None:
        """Return the next of the points that are tried before anything is learnt; None: go on."""

    @abstractmethod
    def _first_count(self) -> int:
        """Return how many results come before anything is learnt, >= 1."""

    def _density_share(self) -> float:
        """Return the share of proposals that do not come from the process."""
        return 0.0

    def _loss_of(self, value: JsonValue) -> float | None:
        losses = self._objectives.losses(value)
        return None if losses is None else losses[0]

    def _propose(self) -> Floats:
        first = self._first_point()
        if first is not None:
            self._arm = "design"
            return first
        self._arm = next_arm(
            self._rng,
            density_share=self._density_share(),
            local_share=LOCAL_SHARE,
            stale=self._progress.stale(self._gained()),
            has_options=not self._cube.ordered.all(),
        )
        familiar = self._plateaus.familiar(self._points, self._losses, list(self._running.values()))
        found = self._found(familiar)
        return self._drawn() if found is None else found

    def _found(self, familiar: Familiar | None) -> Floats | None:
        """Return the most promising point of the way that was chosen, or None."""
        cube, settings = self._cube, self._settings
        belief = self._model.believe(list(self._features()), self._losses)
        running = np.array(list(self._running.values())).reshape(-1, len(cube))
        model = self._model.expecting(belief, list(cube.features(running)))
        effort = search_effort(
            len(belief.points), settings.time_limit_s, settings.most_samples, settings.most_climbs
        )
        taken = self._running_keys() | self._observed_keys()
        threshold = self._threshold(belief, model)
        outlook = Outlook(cube, model, self._acquisition, threshold, familiar)
        every = cube.all_points(effort.samples)
        if every is not None:
            return best_free(cube, every, outlook.rate(every), taken)
        points = np.array(self._points)[belief.kept]
        order = np.argsort(belief.targets, kind="stable")
        region = whole(cube)
        if self._arm == "local":
            centre = points[order[0]]
            least = familiar.reach() if familiar else np.zeros(len(cube))
            size = self._region_size()
            region = around(centre, self._model.lengths(), size, least)
            candidates = within(cube, centre, region, size, effort.samples, self._rng)
        elif self._arm == "option":
            candidates = self._with_some_option(points, belief.targets, effort.samples)
        else:
            candidates = everywhere(cube, points[order[:_GOOD]], effort.samples, self._rng)
        candidates = cube.allowed(candidates)
        if not len(candidates):
            return None
        return outlook.best(candidates, region, taken, effort, discrete=self._arm != "option")

    def _with_some_option(self, points: Floats, losses: Floats, count: int) -> Floats:
        """Return candidates with an option that deserves another try."""
        options = [
            (index, option)
            for index, axis in enumerate(self._cube.axes)
            for option in range(axis.options)
        ]
        masks = [points[:, index] == option for index, option in options]
        weights = option_weights(losses, masks)
        place = int(self._rng.choice(len(options), p=weights))
        having = np.flatnonzero(masks[place])
        good = points[having[np.argsort(losses[having], kind="stable")[:_GOOD]]]
        return with_option(self._cube, good, options[place], count, self._rng)

    def _threshold(self, belief: Belief[BlendedProcess], model: BlendedProcess) -> float:
        """Return the loss to improve on, on the model's scale."""
        best, median = belief.best, float(np.median(belief.targets))
        if self._model.noise() > _NOTABLE_NOISE:
            # A lucky measurement is no better than what is believed of its place.
            best = float(model.predict(belief.points)[0].min())
        if self._running:
            # What runs counts as if it came out as expected: to improve on that, look elsewhere.
            running = self._cube.features(np.array(list(self._running.values())))
            best = min(best, float(model.predict(running)[0].min()))
            best -= _RUNNING_MARGIN * (median - best)
        if self._arm in {"explore", "option"}:
            best -= _MARGIN * (median - best)
        return best

    def _region_size(self) -> float:
        """Return the size of the region for the next proposal."""
        return self._region.expected(size for arm, size in self._ways.values() if arm == "local")

    def _features(self) -> Floats:
        return self._cube.features(np.array(self._points))

    def _gained(self) -> float:
        """Return by how much the best result is better than the best of the first ones."""
        return min(self._losses[: self._first_count()]) - min(self._losses)

    def _start_over(self) -> None:
        """Forget what was learnt of another space."""
        settings = self._settings
        self._model = TreeModel(Blend(self._cube.owners, settings.kernel, settings.alpha))
        self._plateaus = Plateaus(self._cube.ordered)
        self._region = TrustRegion(len(self._cube))
        self._progress = Progress()

    def _forget_model(self) -> None:
        self._model.forget()
        self._plateaus.forget()

    def _model_state(self) -> JsonValue:
        return {
            "model": self._model.state(),
            "region": self._region.state(),
            "gains": list(self._progress.gains),
            "ways": [[number, *way] for number, way in self._ways.items()],
        }

    def _load_model_state(self, state: JsonValue) -> None:
        self._model.load_state(state["model"])
        self._region.load_state(state["region"])
        self._progress = Progress()
        self._progress.gains.extend(state["gains"])
        self._ways = {number: (arm, size) for number, arm, size in state["ways"]}
