"""The way of the `auto` tuner with one loss: a Gaussian process and TPE, side by side.

It begins with points that are spread over the space. Of the others most come from the process (see
`process_search`), the rest from TPE, which copes with branches and with results that are no smooth
function.

Source: that a mixture of samplers beats each of them: Turner et al., Bayesian Optimization is
Superior to Random Search for Machine Learning Hyperparameter Tuning, 2021, section 5.
"""

import logging
from typing import ClassVar, Final

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import TreeCube
from nni.hpo.encoding.unit_cube import point_key
from nni.hpo.json_value import JsonValue
from nni.hpo.models.plateaus import Familiar
from nni.hpo.objectives import Objectives
from nni.hpo.space.parser import parse_space, place
from nni.hpo.tuners.bayesian.acquisition import expected_improvement
from nni.hpo.tuners.bayesian.gp_search import LOCAL_SHARE, ProcessSearch
from nni.hpo.tuners.bayesian.process_settings import ProcessSettings
from nni.hpo.tuners.tpe import TPETuner

_logger = logging.getLogger(__name__)

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
_NOVEL: Final = 0.5
"""Chance of a new result from which a proposal of TPE is taken."""


class BlendedSearch(ProcessSearch):
    """Lowers one loss, in spaces of any types.

    Args:
        objectives: the only one.
        settings: of the process and the search; it has a design in place of a cold start.
        seed: of all draws; None for different ones in every process.
    """

    algorithm: ClassVar[str] = "auto"

    def __init__(self, objectives: Objectives, settings: ProcessSettings, seed: int | None) -> None:
        super().__init__(objectives, expected_improvement(0.0), settings, seed)
        self._density = TPETuner("minimize", seed=seed)

    @property
    def explanation(self) -> str:
        """What was chosen for this space, and why."""
        cube = self._cube
        kind = "with branches" if cube.has_branches else "without branches"
        text = (
            f"{counted(len(cube))} {kind}: {len(self._design)} points spread over the space, "
            f"then TPE for {self._density_share():.0%} of the trials and a Gaussian process for "
            f"the others, {LOCAL_SHARE:.0%} of them near the best point"
        )
        if self._model.scale:
            text += "; good results are compared by the logarithm of their distance from the best"
        if self._plateaus.found:
            text += "; points on the plateau of a known one are passed over"
        return text

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base."""
        self._density.update_search_space(search_space)
        super().update_search_space(search_space)

    def _cube_of(self, search_space: JsonValue) -> TreeCube:
        return TreeCube(parse_space(search_space, algorithm=self.algorithm))

    def _learn(self, configuration: JsonValue, loss: float) -> None:
        try:
            placed = place(self._cube.space, configuration)
        except ValueError as error:
            _logger.warning("auto drops a result outside the search space: %s", error)
            return
        self._keep(configuration, self._cube.point_of(placed), loss)
        self._density.learn(configuration, placed, loss)

    def _first_point(self) -> Floats | None:
        """Return the next point of the design; draws of the prior where there is none left."""
        known = len(self._losses)
        designed = self._handed_out == len(self._design)
        # Of many trials at a time the first results come when all points of the design are out.
        if known >= len(self._design) or (designed and known >= _FEWEST_FIRST):
            return None
        if designed:
            return self._drawn()
        point: Floats = self._design[self._handed_out]
        self._handed_out += 1
        return point if self._cube.allows(point) else self._drawn()

    def _first_count(self) -> int:
        return len(self._design)

    def _density_share(self) -> float:
        if len(self._cube.owners) > _MANY_FEATURES:
            return _MANY_DENSITY
        return _BRANCHED_DENSITY if self._cube.has_branches else _FLAT_DENSITY

    def _found(self, familiar: Familiar | None) -> Floats | None:
        if self._arm == "density":
            point = self._from_density(familiar)
            if point is not None:
                return point
            self._arm = "global"
        return super()._found(familiar)

    def _from_density(self, familiar: Familiar | None) -> Floats | None:
        """Return a proposal of TPE whose result is not known already, or None."""
        taken = self._running_keys() | self._observed_keys()
        for _ in range(_DENSITY_TRIES):
            point = self._cube.point(self._density.suggest())
            if point_key(point) in taken:
                continue
            if familiar is None or familiar.novelty(point[None, :])[0] > _NOVEL:
                return point
        return None

    def _start_over(self) -> None:
        """Forget what was learnt of another space, and spread the first points over this one."""
        super()._start_over()
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
        super()._forget_model()
        self._density.load_state({**self._density.state(), "observed": [], "running": []})

    def _model_state(self) -> JsonValue:
        density = self._density.state()
        return {
            **super()._model_state(),
            "design": self._design.tolist(),
            "handed_out": self._handed_out,
            "density": {"rng": density["rng"], "prior": density["prior"]},
        }

    def _load_model_state(self, state: JsonValue) -> None:
        super()._load_model_state(state)
        self._design = np.array(state["design"], dtype=np.float64).reshape(
            len(state["design"]), len(self._cube)
        )
        self._handed_out = int(state["handed_out"])
        self._density.load_draws(state["density"])


def counted(parameters: int) -> str:
    """Return how many parameters there are, in words."""
    return "1 parameter" if parameters == 1 else f"{parameters} parameters"


def _least_distance(shares: Floats) -> float:
    """Return the least squared distance between two of `(k, d)` points."""
    gaps = ((shares[:, None, :] - shares[None, :, :]) ** 2).sum(axis=-1)
    return float(gaps[np.triu_indices(len(shares), 1)].min())
