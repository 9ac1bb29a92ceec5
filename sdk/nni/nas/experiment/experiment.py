"""`NasExperiment`: an architecture search with its configuration, files and results."""

from __future__ import annotations

import atexit
import contextlib
import logging
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from nni.experiment.config import ExperimentConfig
from nni.experiment.errors import NotFoundError, WrongStateError
from nni.nas.evaluator.base import check_can_evaluate
from nni.nas.execution import ExecutionEngine, ModelEventType, TrainingEndEvent
from nni.nas.experiment.checkpoints import STATE_VERSION, CheckpointFiles
from nni.nas.experiment.config import NasExperimentConfig
from nni.nas.experiment.engines import SearchTarget, client_strategy, create_engine, create_space
from nni.nas.experiment.exports import check_formatter, formatted
from nni.nas.experiment.local_trials import STATES_BY_STRATEGY, LocalTrials
from nni.nas.experiment.log_file import ExperimentLogFile
from nni.nas.experiment.manifest import ExperimentManifest, checked_id
from nni.nas.experiment.model_records import models_of, record_of
from nni.nas.experiment.search_progress import SearchProgress
from nni.nas.experiment.trial_queries import SearchTrials, TrialQueries
from nni.nas.space import ExecutableModelSpace, ModelStatus
from nni.nas.strategy import closest
from nni.nas.strategy.base import Strategy
from nni.nas.strategy.sample_codec import SampleCodec

if TYPE_CHECKING:
    from nni.experiment import Experiment
    from nni.experiment.run_mode import RunMode
    from nni.nas.experiment.platform_trials import TrialExperiment

_logger = logging.getLogger(__name__)

_SAVES_PER_GROWTH: Final = 20
"""A checkpoint is saved when the number of ended models has grown by a twentieth, so that the time
for all checkpoints of a long search grows little faster than the search."""


class NasExperiment(TrialQueries):
    """Architecture search: space, evaluator and strategy, with checkpoints and exports.

    The strategy runs in the calling thread. A search that was stopped or killed is resumed by an
    experiment with new objects of the same kind and the same id.

    Args:
        model_space: network with its choices.
        evaluator: object that trains and measures a network.
        strategy: strategy that decides on the models; it cannot be used again.
        config: configuration; None for that of `NasExperimentConfig.default`.
        id: id of the experiment, 1 to 32 letters, digits, `-` and `_`; None for a new one.

    Attributes:
        model_space: network with its choices.
        evaluator: object that trains and measures a network.
        strategy: strategy of the search.
        config: configuration; it may be edited until the start.
        id: id of the experiment.

    Raises:
        TypeError: `strategy` is no strategy, or `evaluator` has no method `evaluate`.
        ValueError: the id has other characters, or too many.

    Examples:
        ```python
        import nni
        from nni.nas.evaluator import FunctionalEvaluator
        from nni.nas.experiment import NasExperiment
        from nni.nas.nn.pytorch import ModelSpace, MutableLinear
        from nni.nas.strategy import GridSearch


        class Net(ModelSpace):
            def __init__(self):
                super().__init__()
                self.layer = MutableLinear(4, nni.choice("width", [8, 16, 32]))

            def forward(self, x):
                return self.layer(x)


        def train(network):
            nni.report_final_result(network.layer.out_features)


        if __name__ == "__main__":
            experiment = NasExperiment(Net(), FunctionalEvaluator(train), GridSearch())
            experiment.config.trial_concurrency = 2
            experiment.config.max_trial_number = 3
            experiment.run(8080)
            assert experiment.export_top_models(formatter="dict") == [{"width": 32}]
            experiment.stop()
        ```
    """

    _state_dict_version: ClassVar[int] = STATE_VERSION

    def __init__(
        self,
        model_space: Any,  # noqa: ANN401 - a mutable of the user
        evaluator: Any,  # noqa: ANN401 - anything with `evaluate`
        strategy: Strategy,
        config: NasExperimentConfig | None = None,
        id: str | None = None,  # noqa: A002 - documented name
    ) -> None:
        self.id = checked_id(id)
        if not isinstance(strategy, Strategy):
            raise TypeError(
                "strategy must be an object of a class of nni.nas.strategy, such as Random(); "
                f"got {strategy!r:.200}{closest(strategy) if isinstance(strategy, str) else ''}"
            )
        # A space of graphs may have an evaluator of its own.
        own = getattr(model_space, "evaluator", None)
        check_can_evaluate(own if evaluator is None else evaluator)
        self.model_space = model_space
        self.evaluator = evaluator
        self.strategy = strategy
        self._default = NasExperimentConfig.default(model_space, evaluator, strategy)
        self._is_config_given = config is not None
        self.config = self._default.model_copy(deep=True) if config is None else config
        self._canonical: NasExperimentConfig | None = None
        self._engine: ExecutionEngine | None = None
        self._log_file: ExperimentLogFile | None = None
        self._is_running = False
        self._lock = threading.Lock()  # of the two below
        self._records: list[dict[str, Any]] = []
        self._saved_records = 0
        self._progress: SearchProgress | None = None
        self._viewed: Experiment | None = None

    # Start and end

    def start(
        self,
        port: int = 8080,
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
        run_mode: RunMode | str = "background",
    ) -> None:
        """Run the strategy in this thread; return when it has ended, while models may still run.

        Args:
            port: of the page of the trials; 0: none. Without effect with the sequential engine,
                which has no manager.
            debug: log more.
            run_mode: `RunMode.Detach` or `"detach"`: the experiment is not stopped when this
                process ends.

        Raises:
            RuntimeError: it was started before.
            ValueError: the configuration breaks a rule; nothing was started.
        """
        self._start(port, debug=debug, run_mode=run_mode, resumes=False)

    def _start(self, port: int, *, debug: bool, run_mode: RunMode | str, resumes: bool) -> None:
        space = self._prepare(port=port, debug=debug)
        if getattr(run_mode, "value", run_mode) != "detach":
            atexit.register(self.stop)
        self._log_file = ExperimentLogFile(
            self._directory / "log" / "experiment.log", debug=self.config.debug
        )
        self._manifest.add_running(self.id, self.config.experiment_name, _now_ms())
        self._is_running = True
        _logger.info("experiment %s starts in %s", self.id, self._directory)
        self._start_parts(space, resumes=resumes)
        self.save_checkpoint()
        self.strategy.run()
        self.save_checkpoint()

    def _start_parts(self, space: ExecutableModelSpace, *, resumes: bool) -> None:
        """Start strategy and engine; release everything if that fails, as for a port in use.

        The checkpoint that could not be loaded stays as it is: nothing is saved over it.
        """
        assert self._engine is not None
        assert self._canonical is not None
        try:
            self._initialize_strategy(space)
            if not self.strategy.is_one_shot:  # its trainer shows the epochs
                self._progress = SearchProgress(sys.stderr, self._canonical.max_trial_number)
            if resumes:
                self.load_checkpoint()
            self._engine.start()
        except BaseException:
            self._end(saves=False)
            raise

    def _prepare(self, *, port: int = 0, debug: bool = False) -> ExecutableModelSpace:
        """Check the configuration; set engine and strategy, return the space; start nothing."""
        if self._engine is not None:
            raise RuntimeError(
                f"experiment {self.id} was started before; build a new one with id={self.id!r} and "
                "a new strategy, and call resume"
            )
        if debug:
            self.config.debug = True
        canonical = self.config.canonical(self.model_space, self.evaluator, self.strategy)
        space = create_space(canonical, self.model_space, self.evaluator)
        search = SearchTarget(self.model_space, space, self.strategy, port)
        self._canonical, self._engine = canonical, create_engine(canonical, search)
        self.strategy = client_strategy(canonical, self.strategy)
        return space

    def _initialize_strategy(self, space: ExecutableModelSpace) -> None:
        assert self._engine is not None
        self.strategy.initialize(space, self._engine)
        self.strategy.engine.register_model_event_callback(
            ModelEventType.TrainingEnd, self._model_ended
        )
        self.strategy.register_state_callback(self.save_checkpoint)

    def run(
        self,
        port: int = 8080,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> bool | None:
        """Start the search; return True when its models have ended, None after a stop by Ctrl-C.

        Args:
            port: see `start`.
            wait_completion: without effect: the strategy runs in the calling thread.
            debug: log more.

        Returns:
            True at the end; None after Ctrl-C.

        Raises:
            TypeError: a configuration is given instead of a port.
        """
        given: object = port
        if isinstance(given, ExperimentConfig):
            raise TypeError(
                "run takes a port, no configuration: assign experiment.config before, then call "
                "experiment.run()"
            )
        return self._run(port, wait_completion=wait_completion, debug=debug, resumes=False)

    def _run(self, port: int, *, wait_completion: bool, debug: bool, resumes: bool) -> bool | None:
        del wait_completion
        try:
            self._start(port, debug=debug, run_mode="background", resumes=resumes)
            return self._wait_completion()
        except KeyboardInterrupt:
            _logger.warning("the search was interrupted; resume it with id %s", self.id)
            self.stop()
            return None

    def _wait_completion(self) -> bool:
        assert self._engine is not None
        self._engine.wait_models()
        self._close_progress()
        self.save_checkpoint()
        _logger.info("the search has ended")
        return True

    def _close_progress(self) -> None:
        if self._progress is not None:
            self._progress.close()

    def resume(
        self,
        port: int = 8080,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> bool | None:
        """Continue this id's search from its last checkpoint; True at the end, None after Ctrl-C.

        If no configuration was given or edited, it is that of the checkpoint; otherwise differences
        are logged as an error, and the present one is used.

        Args:
            port: see `start`.
            wait_completion: without effect, as of `run`.
            debug: log more.

        Returns:
            True at the end; None after Ctrl-C.

        Raises:
            nni.experiment.errors.NotFoundError: no search of this id was started here.
        """
        self._require_checkpoint()
        return self._run(port, wait_completion=wait_completion, debug=debug, resumes=True)

    def run_or_resume(
        self,
        port: int = 8080,
        wait_completion: bool = True,  # noqa: FBT001, FBT002 - documented signature
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> bool | None:
        """Resume this id's search if it has a checkpoint, else run; return as `resume`.

        Args:
            port: see `start`.
            wait_completion: without effect, as of `run`.
            debug: log more.

        Returns:
            True at the end; None after Ctrl-C.
        """
        act = self.resume if self.has_checkpoint() else self.run
        return act(port, wait_completion, debug)

    def view(
        self,
        port: int = 8080,
        non_blocking: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> None:
        """Load the search of this id to read and export it, show its page; wait for Enter.

        Args:
            port: of the page of the trials, which is read only; 0: none. Without effect with the
                sequential engine.
            non_blocking: true: return at once, the page is open until `stop`; false: return after
                Enter or Ctrl-C.

        Raises:
            nni.experiment.errors.NotFoundError: no search of this id was started here.
            nni.experiment.errors.RefusedError: the port is in use.
        """
        self._require_checkpoint()
        self._initialize_strategy(self._prepare())
        assert self._engine is not None
        self._engine.shutdown()
        self.load_checkpoint()
        self._open_page(self._engine.state_dict().get("experiment_id"), port)
        if not non_blocking:
            with contextlib.suppress(KeyboardInterrupt, EOFError):
                input("Press Enter or Ctrl-C to close it.\n")
            self._close_page()

    def _open_page(self, experiment_id: str | None, port: int) -> None:
        """Show the trials' experiment on a port; only log a warning if it runs."""
        if experiment_id is None or port == 0:
            return
        from nni.experiment import Experiment  # here: a search in this process needs no grpc

        try:
            self._viewed = Experiment.view(experiment_id, port, wait_completion=False)
        except WrongStateError as error:
            _logger.warning("the trials are not shown on port %d: %s", port, error)

    def _close_page(self) -> None:
        if self._viewed is not None:
            self._viewed.stop()
            self._viewed = None

    @classmethod
    def connect(cls, port: int) -> NasExperiment:
        """Raise RuntimeError: a port leads to the trials of a search, and not to its strategy.

        Args:
            port: of a page.

        Returns:
            Nothing.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            f"a search cannot be built from port {port}: its strategy runs in the process that "
            f"started it; use nni.experiment.Experiment.connect({port}) to watch the trials, or "
            "NasExperiment(..., id=...).view() for the models"
        )

    def stop(self) -> None:
        """Save a checkpoint and release everything; does nothing if the experiment is not running.

        The strategy ends before its next model if it runs in another thread.
        """
        self._close_page()
        if self._is_running:
            self._end(saves=True)

    def _end(self, *, saves: bool) -> None:
        self._is_running = False
        atexit.unregister(self.stop)
        self._close_progress()
        if saves:
            self.save_checkpoint()
        self._manifest.set_stopped(self.id, _now_ms())
        if self._engine is not None:
            self._engine.shutdown()
        _logger.info("experiment %s has stopped", self.id)
        if self._log_file is not None:
            self._log_file.close()

    @property
    def tuner_command_channel(self) -> str:
        """Address at which the strategy adds trials, `grpc://<host>:<port>/<id>`; or raises.

        Raises:
            RuntimeError: the experiment is not running, or has no manager.
        """
        if not self._is_running:
            raise RuntimeError("the experiment is not running; start it first")
        experiment = self._trial_experiment()
        if experiment is None:
            raise RuntimeError(
                "the sequential engine needs no manager, so there is no channel to one"
            )
        return experiment.address

    # Trials

    def _trial_experiment(self) -> TrialExperiment | None:
        """Return the experiment of the trials; None if this process evaluates the models."""
        platform = getattr(self._engine, "platform", None)
        experiment: TrialExperiment | None = getattr(platform, "experiment", None)
        return experiment

    def _trials(self) -> SearchTrials:
        experiment = self._trial_experiment()
        return experiment or LocalTrials(self._all_models, self._status, str(self._directory))

    def _all_models(self) -> list[ExecutableModelSpace]:
        if self._engine is None:
            return []
        return self.strategy.list_models(sort=False)

    def _status(self) -> str:
        if self._engine is not None and not self._is_running:
            return "STOPPED"
        return STATES_BY_STRATEGY[self.strategy.status]

    # Results

    def export_top_models(
        self,
        top_k: int = 1,
        *,
        formatter: str | None = None,
        **old_keywords: object,
    ) -> list[Any]:
        """Return up to `top_k` models, largest metric first, as models, samples, networks or code.

        Args:
            top_k: number of models at most.
            formatter: `None` for executable models; `"dict"` for samples, as `model_context` takes
                them; `"instance"` for networks; `"code"` for source code, from models in the graph
                format.
            **old_keywords: `optimize_mode` is ignored with a warning.

        Returns:
            One item for each model.

        Raises:
            ValueError: `top_k` is negative, the formatter is unknown, or the models have no such
                form.
            TypeError: a keyword is unknown.
            RuntimeError: the search was not started.
        """
        for name in old_keywords:
            if name != "optimize_mode":
                raise TypeError(f"export_top_models got an unexpected keyword argument {name!r}")
            warnings.warn(
                "optimize_mode of export_top_models has no effect: metrics are always maximised",
                DeprecationWarning,
                stacklevel=2,
            )
        check_formatter(formatter)
        if top_k < 0:
            raise ValueError(f"top_k must be >= 0, got {top_k}")
        return formatted(self.strategy.list_models(limit=top_k), formatter)

    # Checkpoints

    @property
    def _root(self) -> Path:
        return Path(self.config.experiment_working_directory)

    @property
    def _directory(self) -> Path:
        return self._root / self.id

    @property
    def _manifest(self) -> ExperimentManifest:
        return ExperimentManifest(self._root)

    @property
    def _checkpoint(self) -> CheckpointFiles:
        return CheckpointFiles(self._directory / "checkpoint")

    def has_checkpoint(self) -> bool:
        """Return whether a search of this id has saved a checkpoint.

        Returns:
            True if `resume` can continue it.
        """
        return self._checkpoint.exists()

    def _require_checkpoint(self) -> None:
        if self.id not in self._manifest.entries() or not self.has_checkpoint():
            raise NotFoundError(
                f"no search {self.id} was started in {self._root}; set "
                "config.experiment_working_directory, or start it with run"
            )
        if not self._is_config_given and self.config.to_dict() == self._default.to_dict():
            self.config = NasExperimentConfig(**self._checkpoint.read_config())

    def save_checkpoint(self) -> None:
        """Write the configuration and, once it was started, the state; log an error if it fails.

        The files are `config.json` and `state.ckpt.torch` in `<working directory>/<id>/checkpoint`.
        Each is replaced in one step.
        """
        try:
            self._checkpoint.write_config((self._canonical or self.config).to_dict())
            if self._engine is not None:
                self._checkpoint.write_state(self.state_dict())
        except Exception:
            _logger.exception("the checkpoint of experiment %s could not be saved", self.id)

    def load_checkpoint(self) -> None:
        """Read the checkpoint: log how the configuration has changed, load the state.

        Raises:
            FileNotFoundError: there is no checkpoint.
        """
        self._checkpoint.log_changes((self._canonical or self.config).to_dict())
        if self._engine is None:
            return
        state = self._checkpoint.read_state()
        if state is not None:
            self.load_state_dict(state)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of strategy and engine, and the models that have ended.

        Returns:
            `version` and `strategy`; `engine` and `models` once it was started.
        """
        state: dict[str, Any] = {
            "version": self._state_dict_version,
            "strategy": self.strategy.state_dict(),
        }
        if self._engine is not None:
            state["engine"] = self._engine.state_dict()
            with self._lock:
                state["models"] = list(self._records)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a state, after the strategy was initialized; another version is a warning.

        Args:
            state_dict: what `state_dict` returned.
        """
        if state_dict["version"] != self._state_dict_version:
            _logger.warning(
                "the state has version %s, this is version %s; it may not be read correctly",
                state_dict["version"],
                self._state_dict_version,
            )
        if self._engine is not None and "engine" in state_dict:
            self._engine.load_state_dict(state_dict["engine"])
        self.strategy.load_state_dict(state_dict["strategy"])
        records = list(state_dict.get("models", ()))
        models = models_of(records, self.strategy.model_space)
        self.strategy.restore_models(models)
        if self._engine is not None:
            self._engine.restore_models(models)
        if self._progress is not None:
            self._progress.restore(models)
        with self._lock:
            self._records = records
            self._saved_records = len(records)

    def _model_ended(self, event: TrainingEndEvent) -> None:
        """Record an ended model, unless it was interrupted without metric; save when due."""
        model = event.model
        is_unfinished = event.status is ModelStatus.Interrupted and model.metric is None
        if model.sample is None or is_unfinished:
            return
        if self._progress is not None:
            self._progress.model_ended(event.status, model.metric)
        codec = SampleCodec(self.strategy.model_space.simplify())
        record = record_of(model, codec, event.status)
        with self._lock:
            self._records.append(record)
            new = len(self._records) - self._saved_records
            is_due = new >= max(1, len(self._records) // _SAVES_PER_GROWTH)
            if is_due:
                self._saved_records = len(self._records)
        if is_due:
            self.save_checkpoint()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
