"""The way of the `auto` tuner with one loss: a Gaussian process and TPE, side by side.

Most points come from a Gaussian process over the whole tree of parameters: near the best point, or
anywhere. The rest comes from TPE, which copes with branches and with results that are no smooth
function. When the process finds nothing any more, it looks for marked improvements only, and into
options that were seldom tried.

Source of the parts: see `_tree_cube`, `_tree_search`, `_blended_process` and `tpe`. That a mixture
of samplers beats each of them: Turner et al., Bayesian Optimization is Superior to Random Search
for Machine Learning Hyperparameter Tuning, 2021, section 5.
"""

import logging
from typing import ClassVar, Final

import numpy as np

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import Objectives
from nni.hpo.space import parse_space, place
from nni.hpo.tuners._acquisition import expected_improvement
from nni.hpo.tuners._acquisition_search import search_effort
from nni.hpo.tuners._arms import Arm, Progress, TrustRegion, next_arm, option_weights
from nni.hpo.tuners._blended_process import BlendedProcess
from nni.hpo.tuners._model_based import PointTuner
from nni.hpo.tuners._parzen import Floats
from nni.hpo.tuners._tree_cube import TreeCube
from nni.hpo.tuners._tree_model import Belief, TreeModel
from nni.hpo.tuners._tree_search import Outlook, around, everywhere, whole, with_option, within
from nni.hpo.tuners._unit_cube import best_free, point_key
from nni.hpo.tuners.tpe import TPETuner

_logger = logging.getLogger(__name__)

_GOOD: Final = 5
"""Best results near which candidates are drawn."""
_MOST_SAMPLES: Final = 100_000
_MOST_CLIMBS: Final = 250
_MARGIN: Final = 0.05
"""Improvement that exploring asks for, relative to the distance from the median to the best."""
_LOCAL_SHARE: Final = 0.6

_FLAT_DENSITY: Final = 0.15
_BRANCHED_DENSITY: Final = 0.5
_MANY_DENSITY: Final = 0.7
"""Share of TPE's proposals: in a flat space, in one with branches, in one of many parameters."""
_MANY_FEATURES: Final = 80
"""Columns of the process from which there are many parameters."""

_FEWEST_FIRST: Final = 5
_MOST_FIRST: Final = 10
_FIRST_PER_AXIS: Final = 2
"""Points that are spread over the space before anything is learnt: at least, at most, per axis."""
_MIDDLE: Final = 0.5
_DESIGNS: Final = 20
"""Spreads among which the widest is taken."""
_DENSITY_TRIES: Final = 5
_NOTABLE_NOISE: Final = 1e-3
"""Of the process, relative to its variance, from which single results are not to be trusted."""


class BlendedSearch(PointTuner[TreeCube, float]):
    """Lowers one loss, in spaces of any types.

    Args:
        objectives: the only one.
        seed: of all draws; None for different ones in every process.
        time_limit_s: see `AutoTuner`.
    """

    algorithm: ClassVar[str] = "auto"
    prepares: ClassVar[bool] = True

    def __init__(self, objectives: Objectives, seed: int | None, time_limit_s: float) -> None:
        super().__init__(seed)
        self._objectives = objectives
        self._time_limit = time_limit_s
        self._acquisition = expected_improvement(0.0)
        self._density = TPETuner("minimize", seed=seed)
        self._ways: dict[int, tuple[Arm, float]] = {}
        self._arm: Arm = "design"
        self._start_over()

    @property
    def explanation(self) -> str:
        """What was chosen for this space, and why."""
        cube = self._cube
        kind = "with branches" if cube.has_branches else "without branches"
        return (
            f"{len(cube)} parameters {kind}: {len(self._design)} points spread over the space, "
            f"then TPE for {self._density_share():.0%} of the trials and a Gaussian process for "
            f"the others, {_LOCAL_SHARE:.0%} of them near the best point"
        )

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base."""
        self._density.update_search_space(search_space)
        super().update_search_space(search_space)
        self._start_over()

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """See the base."""
        configuration = super().generate_parameters(parameter_id, **kwargs)
        self._ways[parameter_id] = (self._arm, self._region.size)
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

    def _cube_of(self, search_space: JsonValue) -> TreeCube:
        return TreeCube(parse_space(search_space, algorithm=self.algorithm))

    def _loss_of(self, value: JsonValue) -> float | None:
        losses = self._objectives.losses(value)
        return None if losses is None else losses[0]

    def _learn(self, configuration: JsonValue, loss: float) -> None:
        try:
            placed = place(self._cube.space, configuration)
        except ValueError as error:
            _logger.warning("auto drops a result outside the search space: %s", error)
            return
        self._keep(configuration, self._cube.point_of(placed), loss)
        self._density.learn(configuration, placed, loss)

    def _propose(self) -> Floats:
        known = len(self._losses)
        designed = self._handed_out == len(self._design)
        # Of many trials at a time the first results come when all points of the design are out.
        if known < len(self._design) and not (designed and known >= _FEWEST_FIRST):
            self._arm = "design"
            return self._first_point()
        self._arm = next_arm(
            self._rng,
            density_share=self._density_share(),
            local_share=_LOCAL_SHARE,
            stale=self._progress.stale(self._gained()),
            has_options=not self._cube.ordered.all(),
        )
        found = self._from_density() if self._arm == "density" else self._from_process()
        return self._drawn() if found is None else found

    def _first_point(self) -> Floats:
        """Return the next point of the design; draws of the prior where there is none left."""
        if self._handed_out == len(self._design):
            return self._drawn()
        point: Floats = self._design[self._handed_out]
        self._handed_out += 1
        return point if self._cube.allows(point) else self._drawn()

    def _from_density(self) -> Floats | None:
        """Return a proposal of TPE that is not taken, or None."""
        taken = self._running_keys() | self._observed_keys()
        for _ in range(_DENSITY_TRIES):
            point = self._cube.point(self._density.suggest())
            if point_key(point) not in taken:
                return point
        return None

    def _from_process(self) -> Floats | None:
        """Return the most promising point of the way that was chosen, or None."""
        cube = self._cube
        belief = self._model.believe(list(self._features()), self._losses)
        running = np.array(list(self._running.values())).reshape(-1, len(cube))
        model = self._model.expecting(belief, list(cube.features(running)))
        effort = search_effort(len(belief.points), self._time_limit, _MOST_SAMPLES, _MOST_CLIMBS)
        taken = self._running_keys() | self._observed_keys()
        outlook = Outlook(cube, model, self._acquisition, self._threshold(belief, model))
        every = cube.all_points(effort.samples)
        if every is not None:
            return best_free(cube, every, outlook.rate(every), taken)
        points = np.array(self._points)[belief.kept]
        order = np.argsort(belief.targets, kind="stable")
        region = whole(cube)
        if self._arm == "local":
            centre = points[order[0]]
            region = around(centre, self._model.lengths(), self._region.size)
            candidates = within(cube, centre, region, self._region.size, effort.samples, self._rng)
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

    def _threshold(self, belief: Belief, model: BlendedProcess) -> float:
        """Return the loss to improve on, on the model's scale."""
        best = belief.best
        if self._model.noise() > _NOTABLE_NOISE:
            # A lucky measurement is no better than what is believed of its place.
            best = float(model.predict(belief.points)[0].min())
        if self._arm in {"explore", "option"}:
            best -= _MARGIN * (float(np.median(belief.targets)) - best)
        return best

    def _features(self) -> Floats:
        return self._cube.features(np.array(self._points))

    def _density_share(self) -> float:
        if len(self._cube.owners) > _MANY_FEATURES:
            return _MANY_DENSITY
        return _BRANCHED_DENSITY if self._cube.has_branches else _FLAT_DENSITY

    def _gained(self) -> float:
        """Return by how much the best result is better than the best of the first ones."""
        return min(self._losses[: len(self._design)]) - min(self._losses)

    def _start_over(self) -> None:
        """Forget what was learnt of another space, and spread the first points over this one."""
        self._model = TreeModel(self._cube.owners)
        self._region = TrustRegion(len(self._cube))
        self._progress = Progress()
        self._design = self._spread()
        self._handed_out = 0

    def _spread(self) -> Floats:
        """Return the first points `(k, d)`: a Latin hypercube, the widest of some."""
        axes = len(self._cube)
        if not axes:
            return np.empty((0, 0))
        count = min(max(_FIRST_PER_AXIS * axes + 1, _FEWEST_FIRST), _MOST_FIRST)
        designs = [self._latin(count, axes) for _ in range(_DESIGNS)]
        shares = max(designs, key=_least_distance)
        if not self._cube.has_branches:
            # Who chooses a range expects something good in its middle.
            shares[0] = np.where(self._cube.ordered, _MIDDLE, shares[0])
        return self._cube.stretched(shares)

    def _latin(self, count: int, axes: int) -> Floats:
        places = np.stack([self._rng.permutation(count) for _ in range(axes)], axis=1)
        shares: Floats = (places + self._rng.random((count, axes))) / count
        return shares

    def _forget_model(self) -> None:
        self._model.forget()
        self._density.load_state({**self._density.state(), "observed": [], "running": []})

    def _model_state(self) -> JsonValue:
        density = self._density.state()
        return {
            "model": self._model.state(),
            "design": self._design.tolist(),
            "handed_out": self._handed_out,
            "region": self._region.state(),
            "gains": list(self._progress.gains),
            "ways": [[number, *way] for number, way in self._ways.items()],
            "density": {"rng": density["rng"], "prior": density["prior"]},
        }

    def _load_model_state(self, state: JsonValue) -> None:
        self._model.load_state(state["model"])
        self._design = np.array(state["design"], dtype=np.float64).reshape(
            len(state["design"]), len(self._cube)
        )
        self._handed_out = int(state["handed_out"])
        self._region.load_state(state["region"])
        self._progress = Progress()
        self._progress.gains.extend(state["gains"])
        self._ways = {number: (arm, size) for number, arm, size in state["ways"]}
        self._density.load_draws(state["density"])


def _least_distance(shares: Floats) -> float:
    """Return the least squared distance between two of `(k, d)` points."""
    gaps = ((shares[:, None, :] - shares[None, :, :]) ** 2).sum(axis=-1)
    return float(gaps[np.triu_indices(len(shares), 1)].min())
