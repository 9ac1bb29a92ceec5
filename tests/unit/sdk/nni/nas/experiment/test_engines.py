from pathlib import Path
from typing import Any

import pytest

from nni.experiment import RemoteConfig, RemoteMachineConfig
from nni.mutable import Categorical
from nni.nas.execution import SequentialExecutionEngine, TrainingServiceExecutionEngine
from nni.nas.execution.cgo import CrossGraphOptimization
from nni.nas.experiment.config import (
    CgoEngineConfig,
    GraphModelFormatConfig,
    NasExperimentConfig,
    SequentialEngineConfig,
)
from nni.nas.experiment.engines import (
    SearchTarget,
    client_strategy,
    create_engine,
    create_space,
)
from nni.nas.experiment.explorations import ExplorationEngine, HostedStrategy
from nni.nas.space import GraphModelSpace, RawFormatModelSpace
from nni.nas.strategy import Random
from nni.testing.strategies import TableSpace
from tests.unit.sdk.nni.nas.graph_models import AnchorNet, OperationMutator, linear
from tests.unit.sdk.nni.nas.space_models import TinySpace


def search() -> SearchTarget:
    space = TableSpace(Categorical([1], label="a"))
    return SearchTarget(space, RawFormatModelSpace(space), Random(seed=0))


def test_sequential_engine_has_the_limits_of_its_configuration() -> None:
    config = SequentialEngineConfig(max_model_count=3, max_duration=4.5, continue_on_failure=True)

    engine = create_engine(NasExperimentConfig(config, "raw"), search())

    assert isinstance(engine, SequentialExecutionEngine)
    assert (engine.max_model_count, engine.max_duration) == (3, 4.5)
    assert engine.continue_on_failure


def cgo(*gpu_indices: list[int] | None) -> NasExperimentConfig:
    machines = [
        RemoteMachineConfig(host="10.0.0.7", user="ann", password="secret", gpu_indices=one)
        for one in gpu_indices
    ]
    engine = CgoEngineConfig(
        training_service=RemoteConfig(machine_list=machines), max_concurrency_cgo=3
    )
    return NasExperimentConfig(engine, "graph", "local")


def graphs() -> SearchTarget:
    return SearchTarget(TinySpace(), GraphModelSpace.from_model(TinySpace()), Random())


def test_engine_of_merged_models_uses_trials_on_the_listed_gpus() -> None:
    engine = create_engine(cgo([0, 1], [0]), graphs())

    assert isinstance(engine, CrossGraphOptimization)
    assert isinstance(engine.engine, TrainingServiceExecutionEngine)
    assert engine.platform is engine.engine.platform
    assert engine.devices == 3


@pytest.mark.parametrize("gpu_indices", [(), ([0], None)])
def test_engine_of_merged_models_needs_the_gpus_of_each_machine(gpu_indices: Any) -> None:
    with pytest.raises(ValueError, match="gpu_indices of each remote machine must be listed"):
        create_engine(cgo(*gpu_indices), graphs())


def test_engine_of_merged_models_needs_graphs() -> None:
    with pytest.raises(TypeError, match="model_format must be 'graph' with the engine 'cgo'"):
        create_engine(cgo([0]), search())


def test_strategy_of_the_service_is_followed_by_another_one() -> None:
    config, target = NasExperimentConfig("service", "simplified", "local"), search()

    engine = create_engine(config, target)
    followed = client_strategy(config, target.strategy)

    assert isinstance(engine, ExplorationEngine)
    assert isinstance(followed, HostedStrategy)
    assert followed.delegate is target.strategy
    assert client_strategy(NasExperimentConfig("ts"), target.strategy) is target.strategy


def test_raw_space_keeps_the_live_object() -> None:
    space, evaluator = TableSpace(Categorical([1], label="a")), SequentialEngineConfig

    made = create_space(NasExperimentConfig("sequential", "raw"), space, evaluator)

    assert isinstance(made, RawFormatModelSpace)
    assert made.model_space is space
    assert made.evaluator is evaluator


def test_space_that_has_no_such_format_is_refused() -> None:
    config = NasExperimentConfig("sequential", "simplified")

    with pytest.raises(TypeError, match="model_space must be a ModelSpace"):
        create_space(config, object(), None)


def test_graph_format_has_the_shapes_of_its_dummy_input() -> None:
    config = NasExperimentConfig("sequential", GraphModelFormatConfig(dummy_input=[1, 4]))

    made = create_space(config, TinySpace(), None)

    assert isinstance(made, GraphModelSpace)
    node = made.default().get_node_by_name("hidden")
    assert node.operation.attributes["output_shape"] == [[1, 8]]


def test_graphs_with_mutators_get_the_evaluator() -> None:
    graphs = GraphModelSpace.from_model(
        AnchorNet(), mutators=[OperationMutator("first", [linear(4)], label="m")]
    )
    evaluator: Any = object()

    made = create_space(NasExperimentConfig("sequential", "graph"), graphs, evaluator)

    assert made.evaluator is evaluator
    assert graphs.evaluator is None
    assert list(made.simplify()) == ["m"]


def test_graphs_need_the_graph_format() -> None:
    graphs = GraphModelSpace.from_model(AnchorNet())

    with pytest.raises(TypeError, match=r"set config\.model_format = 'graph'"):
        create_space(NasExperimentConfig("sequential", "raw"), graphs, None)


def test_payloads_of_a_search_on_the_platform_go_to_its_working_directory(tmp_path: Path) -> None:
    config = NasExperimentConfig(
        "ts", "simplified", "local", spill=True, experiment_working_directory=tmp_path
    )

    engine = create_engine(config, search())

    assert isinstance(engine, TrainingServiceExecutionEngine)
    assert engine.payloads is not None
    assert engine.payloads.folder == tmp_path / "payloads"
