"""Declaring an algorithm beside its class."""

from dataclasses import fields
from typing import Annotated, ClassVar

import pytest

from nni.hpo import AlgorithmEntry, MsgDispatcherBase, RandomTuner, Tuner, algorithm
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.arguments import Mode
from nni.hpo.registry.declaration import declaration_of, is_declared
from nni.hpo.registry.rules import IntRange


class Silent(Tuner):
    """Is the base of the tuners here."""

    def update_search_space(self, search_space: JsonValue) -> None:
        """Set the search space, before the first proposal and at each change by the user."""

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        """Process the final result of a trial."""


@algorithm("Demo", use_when="Never.", parallel="None.", reserved={"b", "a"}, extra="demo")
class DemoTuner(Silent):
    """Proposes nothing.

    Args:
        optimize_mode: `maximize` or `minimize`.
        size: number of things.
    """

    lookahead: ClassVar[bool] = True

    def __init__(
        self, optimize_mode: Mode = "minimize", size: Annotated[int, IntRange(1, 9)] = 3
    ) -> None:
        self.made = (optimize_mode, size)


def test_declaration_holds_what_class_and_decorator_say() -> None:
    entry = declaration_of(DemoTuner)

    assert (entry.name, entry.kind, entry.source) == ("Demo", "tuner", "user")
    assert entry.class_path == f"{__name__}:DemoTuner"
    assert entry.documented_path == f"{__name__}.DemoTuner"
    assert [argument.name for argument in entry.arguments] == ["optimize_mode", "size"]
    assert dict(entry.defaults) == {"optimize_mode": "maximize"}
    assert (entry.lookahead, entry.multi_objective, entry.resumable) == (True, False, False)
    assert (entry.reserved, entry.extra) == (("a", "b"), "demo")
    assert (entry.summary, entry.use_when) == ("Proposes nothing.", "Never.")


def test_constructor_refuses_with_the_message_of_the_configuration() -> None:
    with pytest.raises(ValueError, match="size must be an int in") as built:
        DemoTuner(size=10)
    with pytest.raises(ValueError, match="size must be an int in") as configured:
        DemoTuner._declaration.validator.validate_class_args(size=10)  # type: ignore[attr-defined] # set by the decorator

    assert str(configured.value) == f"classArgs of Demo: {built.value}"


def test_constructor_takes_positional_and_named_arguments() -> None:
    assert DemoTuner("maximize", size=4).made == ("maximize", 4)
    assert DemoTuner().made == ("minimize", 3)


def test_wrong_call_raises_the_usual_error() -> None:
    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'sise'"):
        DemoTuner(sise=3)  # type: ignore[call-arg] # wrong on purpose


def test_subclass_has_no_declaration_of_its_own() -> None:
    class Child(DemoTuner):
        pass

    assert is_declared(DemoTuner)
    assert not is_declared(Child)
    with pytest.raises(TypeError, match="Child is not declared; put @algorithm"):
        declaration_of(Child)
    with pytest.raises(ValueError, match="size must be"):
        Child(size=0)


def test_instance_is_not_declared() -> None:
    assert not is_declared(DemoTuner())


def test_source_comes_from_the_docstring_of_the_module() -> None:
    assert declaration_of(RandomTuner).reference.startswith("Bergstra and Bengio, Random Search")
    assert declaration_of(DemoTuner).reference == ""


def test_advisor_is_of_its_kind() -> None:
    @algorithm("Adviser", use_when="Never.")
    class Adviser(MsgDispatcherBase):
        def __init__(self) -> None:
            super().__init__()

    assert declaration_of(Adviser).kind == "advisor"


def test_class_without_a_base_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a subclass of one of Tuner, Assessor, Msg"):

        @algorithm("Loose", use_when="Never.")
        class Loose:
            def __init__(self) -> None:
                pass


def check_nothing(search_space: object) -> None:
    del search_space


def test_functions_are_declared_by_their_paths() -> None:
    @algorithm("Checked", use_when="Never.", space_check=check_nothing, defaults={"size": 1})
    class Checked(Silent):
        def __init__(self, size: int = 2) -> None:
            del size

    entry = declaration_of(Checked)

    assert entry.space_check == f"{__name__}:check_nothing"
    assert dict(entry.defaults) == {"size": 1}


def test_facts_that_a_declaration_leaves_out_are_those_of_an_entry_without_them() -> None:
    @algorithm("Bare", use_when="Never.")
    class BareTuner(Silent):
        """Proposes nothing."""

        def __init__(self) -> None:
            pass

    declared = declaration_of(BareTuner)
    plain = AlgorithmEntry("Bare", "tuner", declared.class_path, declared.documented_path)

    assert [
        field.name
        for field in fields(AlgorithmEntry)
        if getattr(declared, field.name) != getattr(plain, field.name)
    ] == ["validator", "summary", "use_when"]
