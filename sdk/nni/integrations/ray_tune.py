"""Searcher of Ray Tune that suggests what a tuner proposes.

Needs the extra `nni[ray]`.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nni.errors import NoMoreTrialError
from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import scalar_metric
from nni.hpo.search.study import Study
from nni.integrations._extras import missing_extra

_import_error: ModuleNotFoundError | None = None
try:
    from ray.tune.search import Searcher
except ModuleNotFoundError as error:
    # The class has a reference without Ray, too; its constructor raises the error.
    Searcher, _import_error = object, error

__all__ = ["NNISearch"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nni.integrations._ray_spaces import RaySpace

_MODES = {"min": "minimize", "max": "maximize"}


class NNISearch(Searcher):  # type: ignore[misc] # Ray ships no types
    """Searcher of Ray Tune that suggests what a tuner proposes, for one or several metrics.

    The search space is the `param_space` of Ray's `Tuner`, or `search_space`. The last result of a
    trial counts, also where a scheduler has ended it. A trial with an error, or without a finite
    metric, teaches the tuner where trials fail. Ray saves the state with its own: `Tuner.restore`
    goes on with all results.

    Args:
        search_space: a space of NNI, whose configurations trials get unchanged; None for the
            domains of `param_space`.
        tuner: name of a tuner.
        tuner_args: its arguments.
        metric: name of the result, or several; None for that of `TuneConfig`.
        mode: `min` or `max`, one for each metric.
        points_to_evaluate: configurations to suggest first.
        seed: of the tuner.

    Raises:
        ValueError: a name, an argument or the space is wrong.
        ImportError: Ray Tune is missing.

    Examples:
        ```python
        from ray import tune

        from nni.integrations import NNISearch

        search = NNISearch(tuner="TPE", seed=0)
        search.set_search_properties("loss", "min", {"x": tune.uniform(-1, 1)})  # `Tuner` calls it
        for number in range(30):
            config = search.suggest(f"trial_{number}")
            search.on_trial_complete(f"trial_{number}", {"loss": config["x"] ** 2})
        assert abs(search.best_config["x"]) < 0.1
        ```
    """

    def __init__(
        self,
        search_space: JsonValue = None,
        tuner: str = "auto",
        tuner_args: Mapping[str, JsonValue] | None = None,
        *,
        metric: str | Sequence[str] | None = None,
        mode: str | Sequence[str] | None = None,
        points_to_evaluate: Sequence[Mapping[str, Any]] = (),
        seed: int | None = None,
    ) -> None:
        if _import_error is not None:
            raise missing_extra("NNISearch", "Ray Tune", "ray") from _import_error
        super().__init__(metric=_plain(metric), mode=_plain(mode))
        self._metric: str | list[str] | None = _plain(metric)
        self._mode: str | list[str] | None = _plain(mode)
        self._given = search_space
        self._tuner = tuner
        self._tuner_args = dict(tuner_args or {})
        self._points = [dict(point) for point in points_to_evaluate]
        self._seed = seed
        self._ray_space: RaySpace | None = None
        self._study: Study | None = None
        self._open: dict[str, int] = {}
        self._saved: dict[str, Any] | None = None
        if search_space is not None and metric and mode:
            self._start()  # raises for wrong arguments

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy in another process, whose study has a lock of its own."""
        return {**vars(self), "_study": None, "_saved": self._state()}

    @property
    def best_config(self) -> dict[str, Any] | None:
        """Configuration with the best result so far; None before the first, or with several."""
        if self._study is None or not self._study.results or not isinstance(self._metric, str):
            return None
        return self._config(self._study.best_parameters)

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: object
    ) -> bool:
        """Take metric, mode and space of Ray's `Tuner`; return False if a space was given before.

        Args:
            metric: of `TuneConfig`; None if it has none.
            mode: of `TuneConfig`; None if it has none.
            config: `param_space`.
            spec: further settings, which are not needed.

        Returns:
            Whether it was taken: False if there is a search space already, and `config` is not
            empty.

        Raises:
            ValueError: no metric was given in either place, or the space is wrong.
        """
        del spec
        if self._given is not None and config:
            return False
        if self._study is not None:
            return not config
        self._metric = metric or self._metric
        self._mode = mode or self._mode
        if self._given is None:
            from nni.integrations._ray_spaces import RaySpace

            self._ray_space = RaySpace(config)
        self._start()
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | str | None:
        """Return a new trial's configuration; None: wait for results; FINISHED: no more come.

        Args:
            trial_id: of Ray Tune.

        Returns:
            The configuration; None while the tuner waits for results; `Searcher.FINISHED` if it has
            no more.

        Raises:
            ValueError: there is no search space, or no metric.
        """
        study = self._started()
        try:
            trial = study.ask()
        except NoMoreTrialError:
            return None if self._open else Searcher.FINISHED
        self._open[trial_id] = trial.id
        return self._config(trial.parameters)

    def on_trial_complete(
        self,
        trial_id: str,
        result: Mapping[str, Any] | None = None,
        error: bool = False,  # noqa: FBT001, FBT002 - as in Ray Tune
    ) -> None:
        """Pass a trial's last result to the tuner: a failure on error or without finite metrics.

        Args:
            trial_id: of Ray Tune; one that was not suggested is left out.
            result: its last result; None without one.
            error: whether the trial ended by an exception.

        Raises:
            ValueError: there is no search space, or no metric.
        """
        study = self._started()
        opened = self._open.pop(trial_id, None)
        if opened is not None:
            study.tell(opened, None if error else self._value(result))

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float,
        error: bool = False,  # noqa: FBT001, FBT002 - as in Ray Tune
        pruned: bool = False,  # noqa: FBT001, FBT002
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Add the result of a trial evaluated elsewhere for the tuner; ignore failed and pruned.

        Args:
            parameters: its configuration.
            value: its result.
            error: whether it failed: it is left out.
            pruned: whether it was ended early: it is left out.
            intermediate_values: not needed.

        Raises:
            ValueError: the configuration lies outside the search space, or there are several
                metrics.
        """
        del intermediate_values
        study = self._started()
        metrics = _listed(self._metric)
        if len(metrics) > 1:
            raise ValueError("add_evaluated_point takes the result of one metric, got several")
        if not error and not pruned:
            study.add_trial(self._parameters(parameters), {metrics[0]: value})

    def save(self, checkpoint_path: str) -> None:
        """Write the state of the search to a JSON file; Ray Tune calls this while trials run.

        Args:
            checkpoint_path: of the file.
        """
        Path(checkpoint_path).write_text(json.dumps(self._state()), "utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Go on with the state that `save` has written.

        Args:
            checkpoint_path: of the file.

        Raises:
            ValueError: it was written by a search with another space or tuner.
        """
        self._saved = json.loads(Path(checkpoint_path).read_text("utf-8"))
        if self._study is not None:
            self._start()

    def _start(self) -> None:
        metrics, modes = _listed(self._metric), _listed(self._mode)
        if not metrics or len(metrics) != len(modes):
            raise ValueError(
                "metric and mode must be given, to NNISearch or to TuneConfig; "
                f"got {self._metric!r} and {self._mode!r}"
            )
        space = self._given if self._ray_space is None else self._ray_space.entries
        self._study = Study(
            space,
            tuner=self._tuner,
            tuner_args=self._tuner_args,
            optimize_mode={name: _MODES[mode] for name, mode in zip(metrics, modes, strict=True)},
            seed=self._seed,
        )
        saved, self._saved = self._saved, None
        if saved is not None and saved["study"] is not None:
            self._study.load_state(saved["study"])
            self._open = {str(name): int(number) for name, number in saved["open"].items()}
            return
        for point in self._points:
            self._study.enqueue(self._parameters(point))

    def _started(self) -> Study:
        if self._study is None:
            if self._given is None and self._ray_space is None:
                raise ValueError(
                    "a search space must be given: search_space of NNISearch, or param_space of "
                    "Tuner; got none"
                )
            self._start()
        assert self._study is not None
        return self._study

    def _state(self) -> dict[str, Any]:
        if self._study is None:
            return self._saved or {"study": None, "open": {}}
        return {"study": self._study.state(), "open": self._open}

    def _config(self, parameters: JsonValue) -> dict[str, Any]:
        if self._ray_space is not None:
            return self._ray_space.config(parameters)
        return dict(parameters)

    def _parameters(self, config: Mapping[str, Any]) -> dict[str, Any]:
        if self._ray_space is not None:
            return self._ray_space.parameters(config)
        return dict(config)

    def _value(self, result: Mapping[str, Any] | None) -> dict[str, float] | None:
        found = {name: scalar_metric((result or {}).get(name)) for name in _listed(self._metric)}
        numbers = {name: number for name, number in found.items() if number is not None}
        return numbers if len(numbers) == len(found) else None


def _plain(names: str | Sequence[str] | None) -> str | list[str] | None:
    return names if names is None or isinstance(names, str) else list(names)


def _listed(names: str | Sequence[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)
