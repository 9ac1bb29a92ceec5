"""`RetiariiExperiment`: an experiment of NNI 2.x over `NasExperiment`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from nni.nas.benchmark import NasBench101Benchmark, NasBench201Benchmark, SlimBenchmarkSpace
from nni.nas.experiment import NasExperiment, NasExperimentConfig
from nni.nas.experiment.config import GraphModelFormatConfig
from nni.nas.experiment.exports import check_formatter, formatted
from nni.nas.space.pytorch import PytorchGraphModelSpace
from nni.nas.strategy import Strategy
from nni.nas.utils import convert_sample
from nni.retiarii.deprecation import warn_once
from nni.retiarii.experiment.execution_config import RetiariiExeConfig
from nni.retiarii.experiment.mutated_space import mutated_space
from nni.retiarii.oneshot import BaseOneShotTrainer
from nni.retiarii.strategy.custom_strategy import BaseStrategy, CustomStrategy

_BENCHMARKS: Final[Mapping[str | None, type[Any]]] = {
    "nasbench101": NasBench101Benchmark,
    "nasbench201": NasBench201Benchmark,
}
"""Evaluator by the name of a benchmark."""


class RetiariiExperiment:
    """Architecture search of NNI 2.x: runs a strategy or one-shot trainer, exports the best models.

    Args:
        base_model: network with its choices, a class with `model_wrapper`.
        trainer: evaluator, or one-shot trainer.
        applied_mutators: mutators; none with choices inside the network.
        strategy: strategy; None with a one-shot trainer.

    Attributes:
        base_model: network with its choices.
        trainer: evaluator, or one-shot trainer.
        applied_mutators: mutators.
        strategy: strategy.
        config: configuration, once `run` got it.

    Raises:
        TypeError: there is no strategy, and the trainer is no one-shot trainer.
        RuntimeError: there are mutators and choices inside the network.
    """

    def __init__(
        self,
        base_model: Any,  # noqa: ANN401 - a network of any framework
        trainer: Any,  # noqa: ANN401 - anything with `evaluate` or `fit`
        applied_mutators: Sequence[Any] | None = None,
        strategy: Strategy | BaseStrategy | None = None,
    ) -> None:
        warn_once("experiment.pytorch.RetiariiExperiment", "nni.nas.experiment.NasExperiment")
        if strategy is None and not isinstance(trainer, BaseOneShotTrainer):
            raise TypeError(
                "strategy must be an object of a class of nni.retiarii.strategy unless trainer is "
                "a one-shot trainer, got None"
            )
        self._graphs = mutated_space(base_model, applied_mutators) if applied_mutators else None
        self.base_model = base_model
        self.trainer = trainer
        self.applied_mutators = list(applied_mutators or ())
        self.strategy = CustomStrategy(strategy) if isinstance(strategy, BaseStrategy) else strategy
        self.config: RetiariiExeConfig | None = None
        self._experiment: NasExperiment | None = None

    def run(
        self,
        config: RetiariiExeConfig | None = None,
        port: int = 8080,
        debug: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> bool | None:
        """Run the search to its end and return True; Ctrl-C stops it, and None is returned.

        Args:
            config: configuration; None only with a one-shot trainer.
            port: of the page.
            debug: log more.

        Returns:
            True at the end; None after Ctrl-C.

        Raises:
            TypeError: there is no configuration.
        """
        if isinstance(self.trainer, BaseOneShotTrainer):
            self.trainer.fit()
            return True
        if not isinstance(config, RetiariiExeConfig):
            raise TypeError(f"config must be a RetiariiExeConfig, got {config!r:.200}")
        self.config = config
        self._experiment = self._new_experiment(config)
        return self._experiment.run(port, debug=debug)

    def _new_experiment(self, config: RetiariiExeConfig) -> NasExperiment:
        space, evaluator = self.base_model, self.trainer
        if config.execution_engine == "benchmark":
            if config.benchmark not in _BENCHMARKS:
                known = ", ".join(map(repr, _BENCHMARKS))
                raise ValueError(f"benchmark must be one of {known}, got {config.benchmark!r}")
            space = SlimBenchmarkSpace(space.simplify())
            evaluator = _BENCHMARKS[config.benchmark]()
        translated = config.translated()
        if self._graphs is not None:
            space = _with_graphs(self._graphs, config, translated)
        assert self.strategy is not None
        return NasExperiment(space, evaluator, self.strategy, translated)

    def stop(self) -> None:
        """Stop the search and release everything; does nothing if it does not run."""
        if self._experiment is not None:
            self._experiment.stop()

    def export_top_models(
        self,
        top_k: int = 1,
        optimize_mode: Literal["maximize", "minimize"] = "maximize",
        formatter: str = "dict",
    ) -> list[Any]:
        """Return the best models' architectures, or their code, best first; raise before a run.

        Args:
            top_k: number of models at most; 1 with a one-shot trainer.
            optimize_mode: `maximize`: the largest metric is the best; `minimize`: the least.
            formatter: `dict` for architectures, as `fixed_arch` takes them; `code` for source
                code, from the engines `base` and `cgo`; or another one of `NasExperiment`.

        Returns:
            One item for each model.

        Raises:
            ValueError: an argument is unknown.
            RuntimeError: the search did not run.
        """
        check_formatter(formatter)
        if optimize_mode not in {"maximize", "minimize"}:
            raise ValueError(
                f"optimize_mode must be 'maximize' or 'minimize', got {optimize_mode!r}"
            )
        if isinstance(self.trainer, BaseOneShotTrainer):
            if top_k != 1:
                raise ValueError(f"top_k must be 1 with a one-shot trainer, got {top_k}")
            return [self.trainer.export()]
        if self.strategy is None or self._experiment is None:
            raise RuntimeError("the search did not run; call run first")
        models = self.strategy.list_models()
        best = models if optimize_mode == "maximize" else models[::-1]
        found = formatted(best[:top_k], formatter)
        if formatter == "dict":
            has_choices = hasattr(self.base_model, "simplify")
            space = self.base_model if has_choices else self.strategy.model_space
            return [convert_sample(sample, space, "gen2") for sample in found]
        return found


def _with_graphs(
    graphs: PytorchGraphModelSpace, config: RetiariiExeConfig, translated: NasExperimentConfig
) -> PytorchGraphModelSpace:
    """Return the graph space, set up for a configuration; set the graph format in `translated`."""
    if config.execution_engine == "py":
        raise ValueError(
            "execution_engine must be 'base' or 'cgo' with mutators, got 'py'; write the choices "
            "inside the network, or set config.execution_engine = 'base'"
        )
    translated.model_format = GraphModelFormatConfig(dummy_input=config.dummy_input)
    graphs.dummy_input = config.dummy_input
    return graphs
