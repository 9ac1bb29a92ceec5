"""Tuner of convolutional architectures by network morphism.

Source: Jin, Song and Hu, Auto-Keras: An Efficient Neural Architecture Search System, KDD 2019,
arXiv 1806.10282.

Departures: see `search`. Trials get architectures without weights, so that any machine can run any
of them; a child is trained anew.
"""

import logging
from collections import deque
from pathlib import Path
from random import Random
from typing import Annotated, Final

from nni.errors import NoMoreTrialError
from nni.hpo.base import Tuner
from nni.hpo.checkpoint_folders import log_folder
from nni.hpo.json_value import JsonValue, random_state, restore_random
from nni.hpo.objectives import checked_optimize_mode, loss_of
from nni.hpo.registry.arguments import Mode, Seed
from nni.hpo.registry.declaration import accept_any_space, algorithm
from nni.hpo.registry.rules import MANY, FloatRange, IntRange, OneOf, PathText
from nni.hpo.tuners.network_morphism.graph import Graph, json_to_graph
from nni.hpo.tuners.network_morphism.morphs import default_graph
from nni.hpo.tuners.network_morphism.search import Architecture, BayesianOptimizer, Evaluated

_logger = logging.getLogger(__name__)

_WALKS: Final = 100
"""Random walks from known architectures before the search counts as exhausted."""
_NO_PARENT: Final = -1


@algorithm(
    "NetworkMorphism",
    use_when="The architecture of an image classifier is to be found, and none is known.",
    parallel="Served from a queue, which is filled on demand.",
    documented_as="nni.algorithms.hpo.networkmorphism_tuner.NetworkMorphismTuner",
    space_check=accept_any_space,
    constraints=False,
    imports=False,
    extra="hpo",
)
class NetworkMorphismTuner(Tuner):
    """Bayesian search over architectures of convolutional networks; needs no search space.

    A configuration is a JSON text that `json_to_graph` makes a `Graph` of, whose
    `produce_torch_model()` is the network. Imported samples and search spaces are ignored.

    Inside an experiment the folder `path` below its log folder holds each evaluated architecture as
    `<model id>.json`, and the id of the best one in `best_model.txt`. A relative path outside of an
    experiment is not written to.

    Args:
        task: `cv`, the only one.
        input_width: of the square images, in pixels.
        input_channel: of the images.
        n_output_node: number of classes.
        algorithm_name: `Bayesian`, the only one.
        optimize_mode: `maximize` or `minimize`.
        path: folder of the models.
        verbose: whether each new architecture is logged at level INFO.
        beta: weight of the standard deviation in the lower confidence bound, >= 0.
        t_min: temperature at which the search for one architecture ends, in (0, 1).
        max_model_size: most weights of an architecture.
        default_model_len: convolutions of the first architecture.
        default_model_width: their filters.
        seed: of all draws; None for different ones in every process.

    Examples:
        >>> import json
        >>> from nni.hpo import NetworkMorphismTuner
        >>> tuner = NetworkMorphismTuner(input_width=8, input_channel=1, n_output_node=2, seed=0)
        >>> tuner.update_search_space({})
        >>> architecture = json.loads(tuner.generate_parameters(0))
        >>> len(architecture["layer_list"]) > 3
        True
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        task: Annotated[str, OneOf("cv")] = "cv",
        input_width: Annotated[int, IntRange(1, MANY)] = 32,
        input_channel: Annotated[int, IntRange(1, MANY)] = 3,
        n_output_node: Annotated[int, IntRange(1, MANY)] = 10,
        algorithm_name: Annotated[str, OneOf("Bayesian")] = "Bayesian",
        optimize_mode: Mode = "maximize",
        path: Annotated[str, PathText()] = "model_path",
        verbose: bool = True,  # noqa: FBT001, FBT002 - documented signature
        beta: Annotated[float, FloatRange(0)] = 2.576,
        t_min: Annotated[float, FloatRange(0, 1, open_low=True, open_high=True)] = 0.0001,
        max_model_size: Annotated[int, IntRange(1, 2**53)] = 16777216,
        default_model_len: Annotated[int, IntRange(1, 99)] = 3,
        default_model_width: Annotated[int, IntRange(1, MANY)] = 64,
        seed: Seed = None,
    ) -> None:
        self.optimize_mode = checked_optimize_mode(optimize_mode)
        self.input_shape = (input_width, input_width, input_channel)
        self.n_classes = n_output_node
        self.algorithm_name = algorithm_name
        self.verbose = verbose
        self.beta = beta
        self.t_min = t_min
        self.max_model_size = max_model_size
        self.default_model_len = default_model_len
        self.default_model_width = default_model_width
        self.search_space: JsonValue = {}
        self._folder = _folder(path)
        self._rng = Random(seed)
        self.init_search()

    def init_search(self) -> None:
        """Drop all results, and queue the first architecture; ValueError if it is too large.

        Raises:
            ValueError: it is greater than `max_model_size`.
        """
        first = default_graph(
            self.input_shape, self.n_classes, self.default_model_len, self.default_model_width
        )
        if first.size() > self.max_model_size:
            raise ValueError(
                f"max_model_size must be >= {first.size()}, the weights of the first architecture; "
                f"got {self.max_model_size}"
            )
        self.bo = BayesianOptimizer(self.beta, self.t_min, self.max_model_size)
        self._queue: deque[tuple[int, Graph]] = deque([(_NO_PARENT, first)])
        self._running: dict[int, tuple[int, Graph]] = {}
        self._taken: dict[Architecture, Graph] = {first.architecture: first}
        """All architectures that were proposed or are queued."""
        self._models: dict[int, tuple[Graph, float]] = {}
        """Evaluated ones by id, with their metrics."""

    def update_search_space(self, search_space: JsonValue) -> None:
        """Store any search space, without an effect."""
        self.search_space = search_space

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        """Return a queued or newly generated architecture as JSON, and register it."""
        del kwargs
        parent_id, graph = self._queue.popleft() if self._queue else self.generate()
        self._taken.setdefault(graph.architecture, graph)
        self._running[parameter_id] = parent_id, graph
        if self.verbose:
            last = graph.operation_history[-1] if graph.operation_history else "first"
            _logger.info("architecture %s: %s, %s weights", parameter_id, last, graph.size())
        return graph.to_json()

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Add the evaluated architecture of a running trial to the search."""
        del parameters, kwargs
        parent_id, graph = self._running.pop(parameter_id, (_NO_PARENT, None))
        loss = loss_of(value, self.optimize_mode)
        if graph is not None and loss is not None:
            metric = -loss if self.optimize_mode == "maximize" else loss
            self.update(parent_id, graph, metric, parameter_id)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:  # noqa: FBT001 - documented signature
        """Drop a trial without a result; its architecture is not proposed again."""
        del success, kwargs
        self._running.pop(parameter_id, None)

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        """Ignore samples, with a warning in the log."""
        _logger.warning("NetworkMorphism ignores %d imported samples", len(data))

    def generate(self) -> tuple[int, Graph]:
        """Return the id of a root model, or -1, and a new architecture; NoMoreTrialError if none.

        Returns:
            The id of the model whose weights can be inherited, -1 if there is none, and the graph.

        Raises:
            NoMoreTrialError: nothing new was found that is small enough.
        """
        found = self.bo.generate(self._taken.keys(), self._rng)
        if found is not None:
            return found
        graphs = list(self._taken.values())
        graph = self._rng.choice(graphs)
        for _ in range(_WALKS):
            new = self.bo.new_children(graph, self._taken.keys(), self._rng)
            if new:
                return _NO_PARENT, self._rng.choice(new)
            graph = self._rng.choice(graphs)
        raise NoMoreTrialError(f"no architecture is left within {self.max_model_size} weights")

    def update(
        self, other_info: JsonValue, graph: Graph, metric_value: float, model_id: int
    ) -> None:
        """Add an architecture's metric to the search, and write the model to the folder.

        Args:
            other_info: the id that `generate` returned beside the graph.
            graph: the architecture.
            metric_value: finite.
            model_id: a new one.
        """
        del other_info
        loss = -metric_value if self.optimize_mode == "maximize" else metric_value
        self.bo.add(Evaluated(model_id, graph, loss))
        self._taken.setdefault(graph.architecture, graph)
        self._models[model_id] = graph, metric_value
        self.add_model(metric_value, model_id)

    def add_model(self, metric_value: float, model_id: int) -> dict[str, JsonValue]:
        """Write a model and the best one's id to the folder; return its id and metric.

        Args:
            metric_value: final result of the model's trial.
            model_id: id of the model, as in its file name.

        Returns:
            `{"model_id", "metric_value"}`. A full disk costs the files and no more.
        """
        if self._folder is not None:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                text = self._models[model_id][0].to_json()
                (self._folder / f"{model_id}.json").write_text(text, "utf-8")
                (self._folder / "best_model.txt").write_text(f"{self.get_best_model_id()}", "utf-8")
            except OSError as error:
                _logger.warning("model %s is not written to %s: %s", model_id, self._folder, error)
        return {"model_id": model_id, "metric_value": metric_value}

    def get_best_model_id(self) -> int:
        """Return the id of the first model with the best metric; ValueError before any result.

        Returns:
            The id.

        Raises:
            ValueError: none was evaluated yet.
        """
        if not self._models:
            raise ValueError("a best model must have been evaluated; none was yet")
        return min(self.bo.history, key=lambda one: one.loss).model_id

    def get_metric_value_by_id(self, model_id: int) -> float:
        """Return the metric of an evaluated model; ValueError for another id.

        Args:
            model_id: id of the model.

        Returns:
            The final result of its trial.

        Raises:
            ValueError: no evaluated model has this id.
        """
        return self._model(model_id)[1]

    def load_model_by_id(self, model_id: int) -> Graph:
        """Return the architecture of an evaluated model; ValueError for another id.

        Args:
            model_id: id of the model.

        Returns:
            Its graph.

        Raises:
            ValueError: no evaluated model has this id.
        """
        return self._model(model_id)[0]

    def load_best_model(self) -> Graph:
        """Return the architecture of the model with the best metric.

        Returns:
            Its graph.

        Raises:
            ValueError: none was evaluated yet.
        """
        return self.load_model_by_id(self.get_best_model_id())

    def state(self) -> dict[str, JsonValue]:
        """Return random state, architectures, queue, running trials and results as JSON.

        Returns:
            JSON object for `load_state`; its keys are private.
        """
        numbers = {key: number for number, key in enumerate(self._taken)}
        return {
            "rng": random_state(self._rng),
            "graphs": [graph.document() for graph in self._taken.values()],
            "queue": [[parent_id, numbers[graph.architecture]] for parent_id, graph in self._queue],
            "running": [
                [number, parent_id, numbers[graph.architecture]]
                for number, (parent_id, graph) in self._running.items()
            ],
            "models": [
                [model_id, numbers[graph.architecture], metric]
                for model_id, (graph, metric) in self._models.items()
            ],
        }

    def load_state(self, state: dict[str, JsonValue]) -> None:
        """Restore architectures, queue, running trials and results into a new search.

        Args:
            state: what `state` of a tuner with the same arguments returned.
        """
        self.init_search()
        restore_random(self._rng, state["rng"])
        graphs = [json_to_graph(document) for document in state["graphs"]]
        self._taken = {graph.architecture: graph for graph in graphs}
        self._queue = deque((parent_id, graphs[place]) for parent_id, place in state["queue"])
        self._running = {
            number: (parent_id, graphs[place]) for number, parent_id, place in state["running"]
        }
        for model_id, place, metric in state["models"]:
            loss = -metric if self.optimize_mode == "maximize" else metric
            self._models[model_id] = graphs[place], metric
            self.bo.add(Evaluated(model_id, graphs[place], loss))

    def _model(self, model_id: int) -> tuple[Graph, float]:
        if model_id not in self._models:
            raise ValueError(f"model_id must be of an evaluated model, got {model_id!r}")
        return self._models[model_id]


def _folder(path: str) -> Path | None:
    """Return the folder of the models; None for a relative path outside of an experiment."""
    log = log_folder()
    if Path(path).is_absolute():
        return Path(path)
    return log / path if log is not None else None
