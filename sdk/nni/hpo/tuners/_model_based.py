"""What the tuners with a model of points share: their book-keeping."""

import logging
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import numpy as np

from nni.hpo.arrays import Floats
from nni.hpo.base import Tuner, samples
from nni.hpo.encoding.unit_cube import PointKey, point_key, point_keys
from nni.hpo.json_value import JsonValue, random_state, restore_random
from nni.hpo.objectives import checked_optimize_mode, loss_of

_logger = logging.getLogger(__name__)

_DRAWS: Final = 30
"""How often a point that is free is drawn for before the points are counted out."""
_MOST_COUNTED: Final = 50_000
"""Points up to which that is done; in a larger space one draws on."""
_MOST_DRAWS: Final = 1000


class Cube(Protocol):
    """A search space as points `(d,)`; see `UnitCube` and `TreeCube`."""

    def __len__(self) -> int:
        """Return the number of coordinates."""
        ...

    @property
    def size(self) -> int | None:
        """How many points there are; None if too many to be told apart."""
        ...

    def point(self, configuration: JsonValue) -> Floats:
        """Return the point of a configuration; ValueError if it lies outside the space."""
        ...

    def configuration(self, point: Floats) -> dict[str, JsonValue]:
        """Return the configuration at a point."""
        ...

    def draw_prior(self, rng: Random) -> Floats:
        """Return one point of the prior."""
        ...

    def all_points(self, limit: int) -> Floats | None:
        """Return all points `(m, d)`; None if more than `limit`."""
        ...


CubeT = TypeVar("CubeT", bound=Cube)
LossT = TypeVar("LossT", bound=float | tuple[float, ...])


@dataclass(frozen=True, slots=True)
class _Memory:
    """All that choosing a point may change."""

    draws: Mapping[str, Any]
    """State of the generator, as numpy has it."""
    prior: tuple[Any, ...]
    model: JsonValue


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A point that was chosen ahead."""

    point: Floats
    after: _Memory
    """What is so once it has been handed out."""


class PointTuner(Tuner, Generic[CubeT, LossT]):
    """Keeps observations and running trials as points of a cube; a subclass chooses points.

    A running trial's point is not proposed again while there is another one; nor is an observed
    one, unless the subclass wants to measure it again.

    Args:
        seed: of all draws; None for different ones in every process.
    """

    algorithm: ClassVar[str]
    """Its name in errors."""

    prepares: ClassVar[bool] = False
    """Whether choosing a point changes nothing but the generators and the state of the model, so
    that it can be done ahead."""

    def __init__(self, seed: int | None) -> None:
        self._rng = np.random.default_rng(seed)
        self._prior = Random(seed)
        self._cube: CubeT = self._cube_of({})
        self._configurations: list[JsonValue] = []
        self._points: list[Floats] = []
        self._losses: list[LossT] = []
        self._running: dict[int, Floats] = {}
        self._prepared: _Prepared | None = None

    def update_search_space(self, search_space: JsonValue) -> None:
        """See the base. Observations that are no points of the new space are dropped."""
        cube = self._cube_of(search_space)
        known, running = self._results(), self._open()
        self._cube = cube
        self._forget_model()
        self._recall(known, running)

    def prepare_parameters(self) -> None:
        """See the base. What was prepared is dropped when a result or an end changes the choice."""
        if not self.prepares or self._prepared is not None or not len(self._cube):
            return
        before = self._memory()
        point = self._propose()
        self._prepared = _Prepared(point, self._memory())
        self._remember(before)

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> dict[str, JsonValue]:
        """See the base."""
        del kwargs
        point = self._chosen() if len(self._cube) else np.empty(0)
        self._running[parameter_id] = point
        return self._cube.configuration(point)

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """See the base."""
        del kwargs
        self._forget_running(parameter_id)
        loss = self._loss_of(value)
        if loss is not None:
            self._learn(parameters, loss)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """See the base."""
        del success, kwargs
        self._forget_running(parameter_id)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """See the base. Samples outside the space or without a finite value are skipped."""
        for sample in samples(data):
            loss = self._loss_of(sample.value)
            if loss is None:
                _logger.warning(
                    "%s skips an imported sample without a number: %.200r", self.algorithm, sample
                )
            else:
                self._learn(sample.parameter, loss)

    def state(self) -> dict[str, JsonValue]:
        """Return what `load_state` needs to go on from here, as JSON."""
        return {
            "rng": self._rng.bit_generator.state,
            "prior": random_state(self._prior),
            "observed": [[configuration, loss] for configuration, loss in self._results()],
            "running": [[number, configuration] for number, configuration in self._open()],
            "model": self._model_state(),
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Go on from a state of a tuner that was built and given its space alike."""
        restore_random(self._prior, state["prior"])
        self._rng.bit_generator.state = state["rng"]
        self._forget_model()
        self._recall(state["observed"], state["running"])
        self._load_model_state(state["model"])

    @abstractmethod
    def _cube_of(self, search_space: JsonValue) -> CubeT:
        """Return the points of a search space, or raise ValueError for what is not supported."""

    @abstractmethod
    def _loss_of(self, value: JsonValue) -> LossT | None:
        """Return what a report says that is to be minimised; None if it says too little."""

    @abstractmethod
    def _propose(self) -> Floats:
        """Return a point `(d,)` of the space; it has at least one axis."""

    @abstractmethod
    def _forget_model(self) -> None:
        """Drop what was made of the observations, because they change."""

    @abstractmethod
    def _model_state(self) -> JsonValue:
        """Return what the model is, beside the observations, as JSON."""

    @abstractmethod
    def _load_model_state(self, state: JsonValue) -> None:
        """Take over what `_model_state` gave; the observations are there again."""

    def _chosen(self) -> Floats:
        """Return the point that was prepared, or choose one."""
        prepared, self._prepared = self._prepared, None
        if prepared is None:
            return self._propose()
        self._remember(prepared.after)
        return prepared.point

    def _memory(self) -> _Memory:
        return _Memory(self._rng.bit_generator.state, self._prior.getstate(), self._model_state())

    def _remember(self, memory: _Memory) -> None:
        self._rng.bit_generator.state = memory.draws
        self._prior.setstate(memory.prior)
        self._load_model_state(memory.model)

    def _forget_running(self, parameter_id: int) -> None:
        if self._running.pop(parameter_id, None) is not None:
            self._prepared = None

    def _results(self) -> list[tuple[JsonValue, LossT]]:
        return list(zip(self._configurations, self._losses, strict=True))

    def _open(self) -> list[tuple[int, JsonValue]]:
        """Return ids and configurations of the running trials."""
        return [(number, self._cube.configuration(p)) for number, p in self._running.items()]

    def _recall(
        self,
        known: Iterable[tuple[JsonValue, LossT]],
        running: Iterable[tuple[int, JsonValue]],
    ) -> None:
        """Take over what was known and what runs, as far as it lies in the space."""
        self._prepared = None
        self._configurations, self._points, self._losses = [], [], []
        for configuration, loss in known:
            self._learn(configuration, loss)
        self._running = {}
        for number, configuration in running:
            try:
                self._running[number] = self._cube.point(configuration)
            except ValueError:
                continue  # of an earlier space; its end is no news

    def _learn(self, configuration: JsonValue, loss: LossT) -> None:
        try:
            point = self._cube.point(configuration)
        except ValueError as error:
            _logger.warning("%s drops a result outside the search space: %s", self.algorithm, error)
            return
        self._keep(configuration, point, loss)

    def _keep(self, configuration: JsonValue, point: Floats, loss: LossT) -> None:
        self._prepared = None
        self._configurations.append(dict(configuration))
        self._points.append(point)
        self._losses.append(loss)

    def _running_keys(self) -> set[PointKey]:
        return {point_key(point) for point in self._running.values()}

    def _observed_keys(self) -> set[PointKey]:
        return point_keys(self._points)

    def _drawn(self) -> Floats:
        """Return a draw of the prior that is neither running nor observed, if there is one."""
        running = self._running_keys()
        for taken in (running | self._observed_keys(), running):
            point = self._free_draw(taken)
            if point is not None:
                return point
        return self._cube.draw_prior(self._prior)

    def _free_draw(self, taken: set[PointKey]) -> Floats | None:
        """Return a draw of the prior that is not taken, or None if there seems to be none."""
        size = self._cube.size
        counted = size is not None and size <= _MOST_COUNTED
        for _ in range(_DRAWS if counted else _MOST_DRAWS):
            point = self._cube.draw_prior(self._prior)
            if point_key(point) not in taken:
                return point
        points = self._cube.all_points(_MOST_COUNTED)
        if points is None:
            return None
        free = [point for point in points if point_key(point) not in taken]
        return self._prior.choice(free) if free else None


class ModelBasedTuner(PointTuner[CubeT, float], Generic[CubeT]):
    """The same with one loss.

    Args:
        optimize_mode: `maximize` or `minimize`.
        seed: of all draws; None for different ones in every process.
    """

    def __init__(self, optimize_mode: str, seed: int | None) -> None:
        self._mode = checked_optimize_mode(optimize_mode)
        super().__init__(seed)

    def _loss_of(self, value: JsonValue) -> float | None:
        return loss_of(value, self._mode)
