"""Search spaces declared by types."""

import functools
import random
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal

import pydantic
import pytest

from nni.hpo import (
    Choice,
    LogNormal,
    LogUniform,
    Normal,
    QLogNormal,
    QLogUniform,
    QNormal,
    QUniform,
    RandInt,
    TypedSpace,
    Uniform,
    configuration,
    search_space,
)
from nni.hpo.space.parser import parse_space
from nni.hpo.space.typed_space import as_json


class Kernel(Enum):
    RBF = "rbf"
    POLY = "poly"


class Shape(Enum):
    SQUARE = (1, 1)
    WIDE = (2, 1)


@dataclass(frozen=True)
class Svm:
    c: Annotated[float, LogUniform(0.01, 100)] = 1.0
    kernel: Annotated[Kernel, Choice()] = Kernel.RBF


@dataclass(frozen=True)
class Linear:
    pass


@dataclass(frozen=True)
class Optimizer:
    name: Annotated[str, Choice("sgd", "adam")] = "sgd"
    rate: Annotated[float, Uniform(0, 1)] = 0.5


@dataclass(frozen=True)
class Training:
    model: Svm | Linear
    optimizer: Optimizer = field(default_factory=Optimizer)
    layers: Annotated[int, RandInt(1, 5)] = 2
    epochs: int = 10


SVM = {
    "_name": "Svm",
    "c": {"_type": "loguniform", "_value": [0.01, 100]},
    "kernel": {"_type": "choice", "_value": ["rbf", "poly"]},
}


def test_structure_becomes_a_space() -> None:
    assert search_space(Training) == {
        "model": {"_type": "choice", "_value": [SVM, {"_name": "Linear"}]},
        "optimizer/name": {"_type": "choice", "_value": ["sgd", "adam"]},
        "optimizer/rate": {"_type": "uniform", "_value": [0, 1]},
        "layers": {"_type": "randint", "_value": [1, 5]},
    }


def test_configuration_becomes_a_structure() -> None:
    given = {
        "model": {"_name": "Svm", "c": 3, "kernel": "poly"},
        "optimizer/name": "adam",
        "optimizer/rate": 1,
        "layers": 3.0,
        "TRIAL_BUDGET": 9,
    }

    made = configuration(Training, given)

    assert made == Training(Svm(3.0, Kernel.POLY), Optimizer("adam", 1.0), 3, 10)
    assert isinstance(made.layers, int)
    assert isinstance(made.optimizer.rate, float)


def test_every_draw_of_the_space_is_a_configuration() -> None:
    space = parse_space(search_space(Training))
    rng = random.Random(0)

    made = [configuration(Training, space.draw(rng)) for _ in range(50)]

    assert {type(one.model) for one in made} == {Svm, Linear}
    assert {one.layers for one in made} == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("sampling", "kind", "values"),
    [
        (RandInt(0, 3), "randint", [0, 3]),
        (Uniform(0.5, 1), "uniform", [0.5, 1]),
        (QUniform(0, 10, 2.5), "quniform", [0, 10, 2.5]),
        (LogUniform(1e-5, 0.1), "loguniform", [1e-5, 0.1]),
        (QLogUniform(1, 100, 1), "qloguniform", [1, 100, 1]),
        (Normal(0, 1), "normal", [0, 1]),
        (QNormal(0, 1, 0.5), "qnormal", [0, 1, 0.5]),
        (LogNormal(0, 1), "lognormal", [0, 1]),
        (QLogNormal(0, 1, 2), "qlognormal", [0, 1, 2]),
    ],
)
def test_every_range_is_a_type_of_the_space(sampling: Any, kind: str, values: list[float]) -> None:
    def train(x: Annotated[float, sampling]) -> None: ...

    assert search_space(train) == {"x": {"_type": kind, "_value": values}}


@pytest.mark.parametrize(
    ("hint", "wire", "values"),
    [
        (Annotated[int, Choice(16, 32)], [16, 32], [16, 32]),
        (Annotated[float, Choice(1, 2.5)], [1, 2.5], [1, 2.5]),
        (Annotated[bool, Choice()], [False, True], [False, True]),
        (Annotated[Literal["a", "b"] | None, Choice()], ["a", "b", None], ["a", "b", None]),
        (Annotated[Kernel, Choice()], ["rbf", "poly"], [*Kernel]),
        (Annotated[Shape, Choice(Shape.WIDE)], ["WIDE"], [Shape.WIDE]),
        (Annotated[tuple[int, ...], Choice((1, 2), (3,))], [[1, 2], [3]], [(1, 2), (3,)]),
        (Annotated[Any, Choice(1, "a", None)], [1, "a", None], [1, "a", None]),
    ],
)
def test_options_come_back_as_what_was_listed(
    hint: Any, wire: list[Any], values: list[Any]
) -> None:
    def train(x: hint) -> None: ...

    space = TypedSpace(train)

    assert space.search_space() == {"x": {"_type": "choice", "_value": wire}}
    assert [space.configuration({"x": option})["x"] for option in wire] == values


def test_choice_of_classes_and_values_may_mix() -> None:
    def train(model: Annotated[Svm | str | None, Choice(None, Svm, "default")]) -> None: ...

    space = TypedSpace(train)

    assert space.search_space() == {"model": {"_type": "choice", "_value": [None, SVM, "default"]}}
    chosen = space.configuration({"model": {"_name": "Svm", "c": 1, "kernel": "rbf"}})["model"]
    assert chosen == Svm(1.0, Kernel.RBF)
    assert space.configuration({"model": None}) == {"model": None}


def test_structure_that_may_be_none_is_a_choice() -> None:
    def train(model: Svm | None = None, fixed: Linear | None = None) -> None: ...

    assert search_space(train) == {"model": {"_type": "choice", "_value": [SVM, None]}}


def test_trial_outside_an_experiment_gets_the_defaults() -> None:
    @dataclass
    class Small:
        rate: Annotated[float, Uniform(0, 1)] = 0.25
        optimizer: Optimizer = Optimizer("adam")  # frozen, so it can be shared

    made = configuration(Small, {})

    assert (made.rate, made.optimizer) == (0.25, Optimizer("adam"))


def test_part_without_default_is_made_of_the_defaults_inside() -> None:
    def train(optimizer: Optimizer) -> None: ...

    assert configuration(train, {}) == {"optimizer": Optimizer()}


def test_field_that_is_not_tuned_can_be_set_all_the_same() -> None:
    def train(epochs: int = 1, kernel: Kernel = Kernel.RBF, note: str = "") -> None: ...

    assert search_space(train) == {}
    found = configuration(train, {"epochs": 3.0, "kernel": "poly", "note": "x"})
    assert found == {"epochs": 3, "kernel": Kernel.POLY, "note": "x"}
    assert type(found["epochs"]) is int


def test_model_of_pydantic_is_checked_by_its_own_rules() -> None:
    class Model(pydantic.BaseModel):
        rate: Annotated[float, LogUniform(0.1, 1), pydantic.Field(lt=0.9)] = 0.2
        width: Annotated[int, QUniform(8, 64, 8)] = pydantic.Field(16, alias="w")
        part: Svm = Svm()

    assert set(search_space(Model)) == {"rate", "width", "part/c", "part/kernel"}
    made = configuration(Model, {"rate": 0.5, "width": 24.0, "part/c": 2, "part/kernel": "rbf"})
    assert (made.rate, made.width, made.part) == (0.5, 24, Svm(2.0))
    with pytest.raises(ValueError, match="less than"):
        configuration(Model, {"rate": 0.95})


def test_arguments_that_a_partial_gives_are_not_tuned() -> None:
    def train(
        data: list[int], rate: Annotated[float, Uniform(0, 1)], depth: Annotated[int, RandInt(1, 3)]
    ) -> float:
        return sum(data) * rate * depth

    partial = functools.partial(train, [1, 2], depth=2)

    assert search_space(partial) == {"rate": {"_type": "uniform", "_value": [0, 1]}}
    assert partial(**configuration(partial, {"rate": 0.5})) == 3


def test_method_is_tuned_without_its_object() -> None:
    class Trainer:
        def fit(self, rate: Annotated[float, Uniform(0, 1)], **_: object) -> float:
            return rate

    assert set(search_space(Trainer().fit)) == {"rate"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "'model' must have a value or, in Training, a default"),
        ({"model": {"_name": "Tree"}}, "'model' must be one of 'Svm', 'Linear'; got"),
        ({"model": "Svm"}, "'model' must be one of"),
        ({"model": {"_name": "Svm", "c": "1"}}, "'model/Svm/c' must be of type float"),
        ({"model": {"_name": "Linear"}, "layers": 1.5}, "'layers' must be of type int"),
        ({"model": {"_name": "Linear"}, "layers": True}, "'layers' must be of type int"),
        ({"model": {"_name": "Linear"}, "optimizer/name": "x"}, "'optimizer/name' must be one of"),
        ([], "must be a dict"),
        (None, "must be a dict"),
    ],
)
def test_value_outside_the_type_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        configuration(Training, given)


@dataclass
class Chain:
    link: "Chain | None" = None


@dataclass
class Untuned:
    epochs: int


@dataclass
class Lost:
    rate: "Annotated[float, Nowhere(0)]" = 0.0  # noqa: F821 - what is tested


def refused(hint: Any) -> Any:
    """Return a function with one argument of a type."""

    def train(x: hint) -> None: ...

    return train


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (refused(Annotated[int, Uniform(0, 1)]), "train.x must be float: Uniform.* fractions"),
        (refused(Annotated[int, QUniform(0, 1, 0.5)]), "must be float"),
        (refused(Annotated[str, Uniform(0, 1)]), "must be int or float"),
        (refused(Annotated[float, Uniform]), r"must have Uniform\(...\) with its arguments"),
        (refused(Annotated[float, Uniform(0, 1), RandInt(0, 2)]), "must be tuned in one way"),
        (refused(Annotated[float, Uniform(0, 1)] | None), "Annotated around its whole type"),
        (refused(Annotated[str, Choice()]), "must list its options"),
        (refused(Annotated[int, Choice("a")]), "must have options of type int, got 'a'"),
        (refused(Annotated[int, Choice(True)]), "must have options of type int, got True"),
        (refused(Annotated[dict[str, int], Choice({})]), "must have options that are JSON values"),
        (refused(int), "train.x must have a default, or say how it is tuned"),
        (Untuned, "Untuned.epochs must have a default"),
        (Chain, "Chain must not contain itself"),
        (Lost, "type hints of Lost must be known"),
        (int, "must be a dataclass, a pydantic model or a function"),
        (max, "max"),
        ({"x": 1}, "must be a dataclass"),
    ],
)
def test_type_that_describes_no_space_is_refused(source: object, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        search_space(source)


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (Annotated[float, Uniform(1, 0)], "'x'.*low must be <= high"),
        (Annotated[float, LogUniform(0, 1)], "'x'.*must be > 0"),
        (Annotated[Svm, Choice(Svm, Svm)], "_name must be unique"),
    ],
)
def test_range_that_breaks_a_rule_is_refused(hint: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        search_space(refused(hint))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--model Linear", Training(Linear())),
        ("--model Svm", Training(Svm())),
        ("--model/Svm/c 3 --model Svm --epochs 4", Training(Svm(3.0), epochs=4)),
        ("--model Svm --model/Svm/kernel poly", Training(Svm(1.0, Kernel.POLY))),
        ("--model Linear --optimizer/name adam", Training(Linear(), Optimizer("adam"))),
    ],
)
def test_command_line_sets_fields(words: str, expected: Training) -> None:
    assert configuration(Training, {}, words.split()) == expected


def test_command_line_wins_over_the_tuner_and_leaves_its_values_alone() -> None:
    given = {"model": {"_name": "Svm", "c": 2, "kernel": "rbf"}, "layers": 3}

    made = configuration(Training, given, ["--model/Svm/c", "5", "--layers", "1"])

    assert made == Training(Svm(5.0), layers=1)
    assert given == {"model": {"_name": "Svm", "c": 2, "kernel": "rbf"}, "layers": 3}


def test_command_line_reads_values_of_every_kind() -> None:
    def train(
        width: Annotated[int, Choice(16, 32)],
        bias: Annotated[bool | None, Choice()],
        log: bool = False,
        kernel: Kernel = Kernel.RBF,
        note: str = "",
        share: Annotated[Any, Uniform(0, 1)] = 0,
    ) -> None: ...

    words = [
        "--width",
        "32",
        "--bias",
        "null",
        "--log",
        "true",
        "--kernel",
        "POLY",
        "--note",
        "7",
        "--share",
        "0.5",
    ]

    assert configuration(train, {}, words) == {
        "width": 32, "bias": None, "log": True, "kernel": Kernel.POLY, "note": "7", "share": 0.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--rate 1", "unrecognized arguments: --rate"),
        ("--model Tree", "argument --model: must be one of Svm, Linear; got Tree"),
        ("--layers many", "argument --layers: invalid int value"),
        ("--model Linear --model/Svm/c 1", "--model/Svm/c: is only for --model Svm"),
        ("--model/Svm/c 1", "--model/Svm/c: is only for --model Svm"),
    ],
)
def test_wrong_command_line_ends_the_program_with_the_reason(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        configuration(Training, {}, words.split())

    assert message in capsys.readouterr().err


def test_help_tells_what_is_tuned(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        configuration(Training, {}, ["--help"])

    shown = " ".join(capsys.readouterr().out.split())
    assert "--model VALUE one of Svm, Linear" in shown
    assert "--model/Svm/c VALUE loguniform [0.01, 100]" in shown
    assert "--epochs VALUE not tuned" in shown


class Descent(Enum):
    ADAM = "adam"
    SGD = "sgd"


@dataclass
class Guided:
    rate: Annotated[float, LogUniform(1e-5, 1, prior=1e-3)]
    optimizer: Annotated[Descent, Choice(prior={"value": Descent.SGD, "confidence": "high"})]
    size: Annotated[int | None, Choice(1, 2, prior={"weights": [1, 3]})] = None


def test_user_priors_of_fields_are_in_the_search_space() -> None:
    space = search_space(Guided)

    assert space["rate"]["_prior"] == 1e-3
    assert space["optimizer"]["_prior"] == {"value": "sgd", "confidence": "high"}
    assert space["size"]["_prior"] == {"weights": [1, 3]}


def test_user_priors_of_samplings_in_a_dict_are_in_the_search_space() -> None:
    space = as_json({"x": Uniform(0, 1, prior=0.5), "y": Choice("a", "b", prior={"value": "a"})})

    assert space["x"]["_prior"] == 0.5
    assert space["y"]["_prior"] == {"value": "a"}


def test_prior_that_names_no_option_is_refused() -> None:
    def train(x: Annotated[str, Choice("a", "b", prior={"value": "c"})]) -> None: ...

    with pytest.raises(ValueError, match="'x': _prior: value must be one of 'a', 'b'; got 'c'"):
        search_space(train)
