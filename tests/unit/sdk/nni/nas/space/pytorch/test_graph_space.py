"""Networks of graphs, and their source code."""

import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from nni.common.serializer import dump, load
from nni.mutable import Categorical, Sample
from nni.nas.nn.pytorch import ModelSpace, MutableLinear
from nni.nas.space import IllegalGraphError, InvalidMutation, SimplifiedModelSpace
from nni.nas.space.graph_op import Operation
from nni.nas.space.pytorch import PytorchGraphModelSpace
from nni.nas.utils import original_state_dict_hooks
from tests.conformance.nas.test_model_spaces import NestedChoices, SkipConnections
from tests.unit.sdk.nni.nas.graph_models import SAMPLE, AnchorNet, EverySpace, OperationMutator
from tests.unit.sdk.nni.nas.space_models import TinySpace

ROOT = Path(__file__).parents[7]
SPACES = [EverySpace, NestedChoices, SkipConnections, TinySpace]


def network_of(code: str) -> Any:
    """Return a new network of generated code."""
    module = ModuleType("generated")
    exec(code, vars(module))
    return module._model()


def samples(space: ModelSpace, count: int = 6) -> list[Sample]:
    state = random.Random(0)
    return [space.random_sample(random_state=state) for _ in range(count)]


@pytest.mark.parametrize("make", SPACES)
def test_network_computes_what_the_frozen_space_computes(make: type[ModelSpace]) -> None:
    space = make()
    graphs = PytorchGraphModelSpace.from_model(space)
    for sample in samples(space):
        network = graphs.freeze(sample).executable_model().eval()
        expected = SimplifiedModelSpace.from_model(space).freeze(sample).executable_model().eval()
        with original_state_dict_hooks(network), original_state_dict_hooks(expected):
            network.load_state_dict(expected.state_dict())
        inputs = torch.rand(3, 4)

        assert torch.equal(network(inputs), expected(inputs))


@pytest.mark.claim("nas", 39)
@pytest.mark.parametrize("make", SPACES)
def test_code_computes_what_the_network_computes(make: type[ModelSpace]) -> None:
    space = make()
    graphs = PytorchGraphModelSpace.from_model(space)
    for sample in samples(space):
        model = graphs.freeze(sample)
        network = model.executable_model()
        generated = network_of(model.to_code())
        generated.load_state_dict(network.state_dict())
        inputs = torch.rand(3, 4)

        assert torch.equal(generated.eval()(inputs), network.eval()(inputs))


def test_mode_of_the_network_reaches_its_functions() -> None:
    network = PytorchGraphModelSpace.from_model(EverySpace()).freeze(SAMPLE).executable_model()
    inputs = torch.rand(64, 4)

    torch.manual_seed(0)
    first = network.train()(inputs)
    torch.manual_seed(1)
    second = network(inputs)

    assert not torch.equal(first, second)
    assert torch.equal(network.eval()(inputs), network(inputs))


def test_code_runs_without_nni() -> None:
    code = (
        PytorchGraphModelSpace.from_model(TinySpace())
        .freeze({"tiny/width": 8, "tiny/activation": "relu", "tiny/head": 1})
        .to_code()
    )
    check = "import sys\nprint(_model()(torch.rand(2, 4)).shape, 'nni' in sys.modules)"

    output = subprocess.run(
        [sys.executable, "-c", f"{code}\n{check}"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout

    assert output.split("\n")[0] == "torch.Size([2, 2]) False"


def test_network_is_found_again_from_json() -> None:
    model = PytorchGraphModelSpace.from_model(EverySpace()).freeze(SAMPLE)

    loaded = load(dump(model))

    assert loaded.to_code() == model.to_code()
    assert loaded.sample == SAMPLE


def test_dump_of_a_space_can_be_frozen() -> None:
    space = PytorchGraphModelSpace.from_model(EverySpace())

    loaded = load(dump(space))

    assert loaded.freeze(SAMPLE).to_code() == space.freeze(SAMPLE).to_code()


def test_space_with_choices_has_no_code() -> None:
    with pytest.raises(IllegalGraphError, match="is a choice; freeze the space"):
        PytorchGraphModelSpace.from_model(EverySpace()).to_code()


def test_shapes_follow_from_a_dummy_input() -> None:
    space = PytorchGraphModelSpace.from_model(TinySpace(), dummy_input=[1, 4])

    node = space.freeze({"tiny/width": 16, "tiny/activation": "relu", "tiny/head": 0})
    hidden = node.get_node_by_name("hidden")

    assert hidden is not None
    assert hidden.operation.attributes == {"input_shape": [[1, 4]], "output_shape": [[1, 16]]}


def test_dummy_input_is_part_of_the_dump() -> None:
    space = load(dump(PytorchGraphModelSpace.from_model(TinySpace(), dummy_input=[1, 4])))

    assert space.dummy_input == [1, 4]
    assert space.freeze(space.default_sample()).get_nodes()[0].operation.attributes


@pytest.mark.parametrize("wrong", [[1, 0], [1, True], [1, 2.0], "1,4"])
def test_dummy_input_that_is_no_shape_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="dummy_input must be a shape: positive integers"):
        PytorchGraphModelSpace.from_model(TinySpace(), dummy_input=wrong)


def test_shapes_that_do_not_fit_reject_the_sample() -> None:
    wrong = Operation.new(
        "__torch__.torch.nn.modules.linear.Linear", {"in_features": 5, "out_features": 4}
    )
    space = PytorchGraphModelSpace.from_model(
        AnchorNet(), dummy_input=[1, 4], mutators=[OperationMutator("first", [wrong], "m")]
    )

    with pytest.raises(InvalidMutation, match="its shapes do not fit"):
        space.freeze({"m": wrong})


def test_class_and_arguments_of_the_base_model_are_kept() -> None:
    space = PytorchGraphModelSpace.from_model(TinySpace(inputs=3))

    assert space.python_class is TinySpace
    assert space.python_init_params == {"inputs": 3}


@pytest.mark.claim("nas", 38)
def test_mixing_choices_and_mutators_warns() -> None:
    with pytest.warns(RuntimeWarning, match="choices of its own, and mutators"):
        PytorchGraphModelSpace.from_model(TinySpace(), mutators=[OperationMutator("first", [])])


def test_choices_of_a_network_that_is_no_space_are_found() -> None:
    width = Categorical([3, 5], label="width")
    network = nn.Sequential(MutableLinear(4, width), MutableLinear(width, 2))

    graphs = PytorchGraphModelSpace.from_model(network)

    assert list(graphs.simplify()) == ["width"]
    frozen = graphs.freeze({"width": 5}).executable_model()
    assert frozen(torch.rand(1, 4)).shape == (1, 2)


def test_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="no option width"):
        PytorchGraphModelSpace.from_model(TinySpace(), width=3)


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.Module, got int"):
        PytorchGraphModelSpace.from_model(3)


def test_weights_of_the_original_module_are_loaded_by_its_names() -> None:
    original = nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 2)))
    network = PytorchGraphModelSpace.from_model(original).fork().build_model()

    with original_state_dict_hooks(network):
        network.load_state_dict(original.state_dict())

    inputs = torch.rand(2, 4)
    assert torch.equal(network(inputs), original(inputs))
