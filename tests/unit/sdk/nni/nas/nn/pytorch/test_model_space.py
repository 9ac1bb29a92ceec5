"""Outermost networks of search spaces."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.common.serializer import dump, is_traceable, is_wrapped_with_trace, load, trace
from nni.mutable import Categorical, ExpressionConstraint, SampleMissingError, ensure_frozen
from nni.nas.nn.pytorch import (
    LayerChoice,
    ModelSpace,
    MutableDropout,
    MutableLinear,
    MutableModule,
)
from nni.nas.space import model_context
from tests.unit.sdk.nni.nas.space_models import SharedSpace, TinySpace


class DepthwiseSeparableConv(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(inputs, inputs, 3, groups=inputs)
        self.pointwise = nn.Conv2d(inputs, outputs, 1)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.pointwise(self.depthwise(inputs))
        return output


class QuickStart(ModelSpace):
    """The network of the quick start, for images of 28 x 28."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = LayerChoice(
            [nn.Conv2d(32, 64, 3, 1), DepthwiseSeparableConv(32, 64)], label="conv2"
        )
        self.dropout1 = MutableDropout(Categorical([0.25, 0.5, 0.75], label="dropout"))
        self.dropout2 = nn.Dropout(0.5)
        feature = Categorical([64, 128, 256], label="feature")
        self.fc1 = MutableLinear(9216, feature)
        self.fc2 = MutableLinear(feature, 10)

    def forward(self, images: Tensor) -> Tensor:
        hidden = functional.relu(self.conv1(images))
        hidden = functional.max_pool2d(self.conv2(hidden), 2)
        hidden = torch.flatten(self.dropout1(hidden), 1)
        hidden = self.dropout2(functional.relu(self.fc1(hidden)))
        return functional.log_softmax(self.fc2(hidden), 1)


class OwnMutable(ModelSpace, label_prefix="own"):
    """Space whose constructor uses the value of a mutable."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        depth = self.add_mutable(Categorical([1, 2], label="depth"))
        self.layers = nn.Sequential(
            *(nn.Linear(inputs, inputs) for _ in range(ensure_frozen(depth)))
        )


class Inner(ModelSpace, label_prefix="inner"):
    def __init__(self) -> None:
        super().__init__()
        self.layer = LayerChoice([nn.ReLU(), nn.Tanh()], label="layer")


class Outer(ModelSpace, label_prefix="outer"):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.width = MutableLinear(1, Categorical([1, 2], label="width"))


class Derived(TinySpace):
    """Subclass that inherits prefix and constructor."""


class Automatic(ModelSpace, label_prefix="auto"):
    def __init__(self) -> None:
        super().__init__()
        self.one = LayerChoice([nn.ReLU(), nn.Tanh()])
        self.two = LayerChoice([nn.ReLU(), nn.Tanh()])


@pytest.mark.claim("nas", 25)
def test_quick_start_has_18_points_that_all_compute() -> None:
    space = QuickStart()
    images = torch.zeros(2, 1, 28, 28)

    networks = list(space.grid())

    assert len(networks) == 18
    assert all(network(images).shape == (2, 10) for network in networks[::5])
    assert space(images).shape == (2, 10)


@pytest.mark.claim("nas", 26)
def test_construction_in_a_context_gives_a_module_without_mutables() -> None:
    with model_context({"tiny/width": 32, "tiny/activation": "tanh", "tiny/head": 1}):
        network = TinySpace()

    assert network.simplify() == {}
    assert type(network.hidden) is nn.Linear
    assert (network.hidden.out_features, network.head[0].in_features) == (32, 32)


@pytest.mark.claim("nas", 27)
def test_choices_of_one_label_are_one_dimension() -> None:
    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.one = MutableDropout(Categorical([0.2, 0.5, 0.8], label="rate"))
            self.two = MutableDropout(Categorical([0.2, 0.5, 0.8], label="rate"))

    rates = [(network.one.p, network.two.p) for network in Net().grid()]

    assert rates == [(0.2, 0.2), (0.5, 0.5), (0.8, 0.8)]


def test_prefix_precedes_all_labels() -> None:
    assert list(TinySpace().simplify()) == ["tiny/width", "tiny/activation", "tiny/head"]


def test_prefixes_of_nested_spaces_are_joined() -> None:
    assert list(Outer().simplify()) == ["outer/inner/layer", "outer/width"]


def test_nested_space_is_fixed_in_a_context() -> None:
    sample = {"outer/inner/layer": 1, "outer/width": 2}

    with model_context(sample):
        network = Outer()

    assert isinstance(network.inner.layer, nn.Tanh)
    assert isinstance(Outer().freeze(sample).inner.layer, nn.Tanh)


def test_subclass_inherits_prefix_and_records_itself() -> None:
    space = Derived(inputs=2)

    assert next(iter(space.simplify())) == "tiny/width"
    assert space.trace_symbol is Derived
    assert space.trace_kwargs == {"inputs": 2}


def test_second_construction_has_the_same_automatic_labels() -> None:
    assert list(Automatic().simplify()) == ["auto/1", "auto/2"]
    assert list(Automatic().simplify()) == ["auto/1", "auto/2"]


@pytest.mark.parametrize("prefix", ["", "a/b"])
def test_bad_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match=r"label_prefix of Net must not be empty or contain '/'"):

        class Net(ModelSpace, label_prefix=prefix):
            pass


def test_without_a_prefix_each_primitive_needs_a_label() -> None:
    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.layer = LayerChoice([nn.ReLU()])

    with pytest.raises(ValueError, match="LayerChoice in Net needs a label"):
        Net()


@pytest.mark.filterwarnings("ignore:a mutable outside any label scope")
def test_without_a_prefix_each_argument_needs_a_label() -> None:
    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.layer = MutableDropout(Categorical([0.1, 0.2]))

    with pytest.raises(ValueError, match=r"Categorical\(.* in Net needs a label"):
        Net()


def test_arguments_are_recorded_and_dumped() -> None:
    space = load(dump(TinySpace(3)))

    assert isinstance(space, TinySpace)
    assert space.args == {"inputs": 3}
    assert is_traceable(space)


def test_space_is_traced_by_itself() -> None:
    assert is_wrapped_with_trace(Derived)
    assert trace(Derived) is Derived


def test_shell_of_the_construction_can_be_changed() -> None:
    shell = TinySpace(3).trace_copy()

    shell.trace_kwargs["inputs"] = 5

    assert shell.get().hidden.in_features == 5


def test_space_stays_usable_after_freezing() -> None:
    space = TinySpace()

    space.freeze({"tiny/width": 32, "tiny/activation": "tanh", "tiny/head": 1})

    assert space(torch.zeros(2, 4)).shape == (2, 2)
    assert len(space.simplify()) == 3


def test_frozen_space_has_the_class_of_the_space() -> None:
    frozen = SharedSpace().freeze({"first": 0})

    assert type(frozen) is SharedSpace
    assert frozen.freeze({}) is frozen


def test_space_with_own_mutables_is_constructed_again() -> None:
    space = OwnMutable(3)

    frozen = space.freeze({"own/depth": 2})

    assert (len(space.layers), len(frozen.layers)) == (1, 2)
    assert frozen.simplify() == {}


def test_space_whose_modules_use_registered_values_is_constructed_again() -> None:
    class Token(MutableModule):
        def __init__(self) -> None:
            super().__init__()
            size = self.add_mutable(Categorical([4, 8], label="size"))
            self.token = nn.Parameter(torch.zeros(ensure_frozen(size)))

    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(Token())

    assert Net().freeze({"size": 8}).body[0].token.shape == (8,)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_frozen_network_is_compiled_by_torchscript() -> None:
    network = TinySpace().freeze({"tiny/width": 8, "tiny/activation": "relu", "tiny/head": 1})
    inputs = torch.ones(1, 4)

    scripted = torch.jit.script(network)

    assert torch.equal(scripted(inputs), network(inputs))


def test_nested_space_with_own_mutables_is_constructed_in_its_scope() -> None:
    class Around(ModelSpace, label_prefix="around"):
        def __init__(self) -> None:
            super().__init__()
            self.inner = OwnMutable(2)

    frozen = Around().freeze({"around/own/depth": 2})

    assert len(frozen.inner.layers) == 2


def test_frozen_factory_constructs_a_new_network_each_time() -> None:
    factory = SharedSpace().frozen_factory({"first": 0})

    first, second = factory(), factory()

    assert not torch.equal(first.last.weight, second.last.weight)


def test_supernet_keeps_its_weights_even_with_own_mutables() -> None:
    space = OwnMutable(3)
    space.is_supernet = True
    space.choice = LayerChoice([nn.Linear(3, 3), nn.Identity()], label="choice")

    frozen = space.freeze({"own/depth": 1, "choice": 0})

    assert frozen.choice is space.choice[0]
    assert frozen.simplify() == {}


def test_value_of_an_unregistered_mutable_is_missing_in_the_constructor() -> None:
    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.width = ensure_frozen(Categorical([1, 2], label="width"))

    with pytest.raises(SampleMissingError, match="'width'"):
        Net()


def test_constraints_can_be_registered() -> None:
    class Net(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            one = self.add_mutable(Categorical([1, 3], label="one"))
            two = self.add_mutable(Categorical([2, 4], label="two"))
            self.add_mutable(ExpressionConstraint(one + two == 5, label="sum"))

    assert list(Net().grid_samples()) == [{"one": 1, "two": 4}, {"one": 3, "two": 2}]


def test_constructor_can_be_left_as_it_is() -> None:
    class Net(ModelSpace, disable_init_wrapper=True):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.layer = nn.Linear(width, 1)

    assert not is_wrapped_with_trace(Net)
    assert Net(2).layer.in_features == 2


def test_space_without_searched_models_says_so() -> None:
    with pytest.raises(ValueError, match="TinySpace has no searched models, got name='best'"):
        TinySpace.load_searched_model("best")


def test_space_has_no_hooks_by_default() -> None:
    assert TinySpace.extra_oneshot_hooks(object()) == []


def test_gradients_reach_the_weights_of_a_frozen_network() -> None:
    network = copy.deepcopy(TinySpace()).freeze(
        {"tiny/width": 8, "tiny/activation": "relu", "tiny/head": 0}
    )

    network(torch.ones(2, 4)).sum().backward()

    assert all(parameter.grad is not None for parameter in network.parameters())


def test_space_that_is_constructed_again_keeps_mode_and_dtype() -> None:
    class Used(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            width = self.add_mutable(Categorical([2, 4], label="width"))
            self.layer = nn.Linear(3, ensure_frozen(width))

    frozen = Used().eval().double().freeze({"width": 4})

    assert (frozen.training, frozen.layer.training) == (False, False)
    assert frozen.layer.weight.dtype == torch.float64
