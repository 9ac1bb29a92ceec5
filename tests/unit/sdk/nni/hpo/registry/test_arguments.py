"""Arguments: how they are read from a class, and the messages of a refusal."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated

import pytest

from nni.hpo.registry.arguments import (
    IN_CONFIGURATIONS,
    REQUIRED,
    Argument,
    DeclaredArguments,
    Fields,
    Mode,
    Seed,
    arguments_of,
    check_arguments,
)
from nni.hpo.registry.factory import validate
from nni.hpo.registry.rules import (
    AnyValue,
    Boolean,
    FloatRange,
    IntAbove,
    IntRange,
    OneOf,
    PositiveNumbers,
    Text,
)


class Example:
    """Is an example.

    Args:
        size: number of things,
            on two lines.
        name: of the thing.
        mode: `maximize` or `minimize`.
        seed: of all draws.

    Raises:
        ValueError: size: is wrong.
    """

    def __init__(
        self,
        size: Annotated[int, IntRange(1, 9), IN_CONFIGURATIONS] = 3,
        name: str | None = None,
        mode: Mode = "maximize",
        seed: Seed = None,
        *,
        flag: bool = False,
        share: float = 0.5,
        factors: Annotated[Sequence[float], PositiveNumbers()] = (1.0,),
        other: object = "x",
    ) -> None:
        del size, name, mode, seed, flag, share, factors, other


def test_arguments_are_read_from_signature_and_docstring() -> None:
    assert arguments_of(Example) == (
        Argument("size", IntRange(1, 9), 3, "number of things, on two lines.", required=True),
        Argument("name", Text(), None, "of the thing.", nullable=True),
        Argument("mode", OneOf("maximize", "minimize"), "maximize", "`maximize` or `minimize`."),
        Argument("seed", IntRange(0, 2**63 - 1), None, "of all draws.", nullable=True),
        Argument("flag", Boolean(), False),
        Argument("share", FloatRange(), 0.5),
        Argument("factors", PositiveNumbers(), (1.0,)),
        Argument("other", AnyValue(), "x"),
    )


def test_argument_without_a_default_is_required() -> None:
    class Needy:
        def __init__(self, size: int) -> None:
            del size

    (size,) = arguments_of(Needy)

    assert size.default is REQUIRED
    assert size.required


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"size": 10}, r"^size must be an int in \[1, 9\], got 10$"),
        ({"flag": 1}, r"^flag must be true or false, got 1; leave it out for False$"),
        ({"seed": -1}, r"or None, got -1; leave it out for None$"),
        ({"sise": 1}, r"^unknown argument 'sise'; known: size, .*; did you mean 'size'\?$"),
        ({"unlike": 1}, r"^unknown argument 'unlike'; known: size, [^;]*$"),
    ],
)
def test_refusal_says_name_rule_value_and_remedy(given: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        check_arguments(arguments_of(Example), given)


def test_only_configurations_must_give_a_marked_argument() -> None:
    check_arguments(arguments_of(Example), {})

    with pytest.raises(ValueError, match=r"'size' is required: an int in \[1, 9\]"):
        check_arguments(arguments_of(Example), {}, configuration=True)


BUDGETS = (
    Argument("low", IntRange(1), 1),
    Argument("high", IntAbove("low"), 3),
)


def test_relation_between_arguments_holds_for_defaults_as_well() -> None:
    check_arguments(BUDGETS, {"low": 2})

    with pytest.raises(ValueError, match="an int > low = 3, got 3; raise it, or lower low"):
        check_arguments(BUDGETS, {"low": 3})
    with pytest.raises(ValueError, match="high must be an int > low = 1, got 1"):
        check_arguments(BUDGETS, {"high": 1})


def test_fields_of_a_dict_are_checked_by_their_own_rules() -> None:
    argument = Argument("more", Fields((Argument("gamma", FloatRange(0), 1.0),)), None)

    check_arguments([argument], {"more": {"gamma": 2}})
    with pytest.raises(ValueError, match=r"^more\.gamma must be a number >= 0, got -1"):
        check_arguments([argument], {"more": {"gamma": -1}})
    with pytest.raises(ValueError, match=r"unknown argument 'more\.gama'.*mean 'more\.gamma'"):
        check_arguments([argument], {"more": {"gama": 1}})
    with pytest.raises(ValueError, match="more must be a dict with keys gamma, got 3"):
        check_arguments([argument], {"more": 3})


def refuse_pairs(*, low: object, high: object) -> None:
    if low == high:
        raise ValueError("low and high must differ")


def test_declared_check_gets_all_values() -> None:
    declared = DeclaredArguments(
        "Demo", (Argument("low", IntRange(1), 1), Argument("high", IntRange(1), 2)),
        f"{__name__}:{refuse_pairs.__name__}",
    )  # fmt: skip

    declared.validate_class_args(low=1)
    with pytest.raises(ValueError, match=r"^classArgs of Demo: low and high must differ"):
        declared.validate_class_args(low=2)
    with pytest.raises(ValueError, match=r"^low and high must differ"):
        declared.validate({"high": 1})


def test_argument_that_configurations_must_give_has_a_default_in_python() -> None:
    declared = DeclaredArguments("Demo", arguments_of(Example))

    declared.validate({})
    with pytest.raises(ValueError, match="size"):
        declared.validate({}, configuration=True)
    with pytest.raises(ValueError, match=r"^classArgs of Demo: .*size"):
        declared.validate_class_args()


def test_declarations_are_equal_by_content() -> None:
    one, same = DeclaredArguments("Demo", BUDGETS), DeclaredArguments("Demo", tuple(BUDGETS))

    assert one == same
    assert hash(one) == hash(same)
    assert one != DeclaredArguments("Demo", BUDGETS[:1])


def test_arguments_are_importable_without_numpy() -> None:
    program = (
        "import sys, nni.hpo.registry.arguments\n"
        "assert not {'numpy', 'scipy', 'grpc', 'pydantic'} & set(sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0


def test_default_is_compared_with_another_argument_only_where_it_counts() -> None:
    validate("advisor", "MOASHA", {"min_budget": 100, "max_budget": 200})

    with pytest.raises(ValueError, match="max_budget"):
        validate("advisor", "MOASHA", {"min_budget": 100})
