"""Validation of chosen algorithms."""

from dataclasses import replace

import pytest

from svc_common.errors import InvalidArgumentError
from svc_dispatcher.adapters.registry_catalog import RegistryCatalog
from svc_dispatcher.domain.values import RequestedAlgorithm
from svc_dispatcher.ports import ClassChoice
from svc_dispatcher.usecases.algorithms import Algorithms
from tests.support.third_party import third_party

__all__ = ["third_party"]  # fixture

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


class ManualChecker:
    """`ClassChecker` with a fixed answer."""

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        self.asked: list[tuple[ClassChoice, str]] = []

    async def check(self, choice: ClassChoice, interpreter: str) -> str:
        self.asked.append((choice, interpreter))
        return self.problem


def choice(kind: str, name: str = "", **values: object) -> RequestedAlgorithm:
    fields: dict[str, object] = {
        "kind": kind,
        "name": name,
        "class_name": "",
        "code_directory": "",
        "server_address": "",
        "class_args": {},
    }
    return RequestedAlgorithm(**(fields | values))  # type: ignore[arg-type]  # fields of their types


async def refusal(*choices: RequestedAlgorithm, space: object = None, problem: str = "") -> str:
    algorithms = Algorithms(RegistryCatalog(), ManualChecker(problem))
    with pytest.raises(InvalidArgumentError) as caught:
        await algorithms.validate(list(choices), SPACE if space is None else space, "")
    return caught.value.message


async def test_nothing_at_all_is_refused() -> None:
    assert "tuner must be given" in await refusal()


async def test_assessor_alone_is_refused() -> None:
    assert "tuner must be given" in await refusal(choice("assessor", "Medianstop"))


@pytest.mark.claim("hpo", 51)
async def test_advisor_beside_others_is_refused() -> None:
    message = await refusal(choice("advisor", "Any"), choice("tuner", "TPE"))

    assert "advisor excludes tuner" in message


@pytest.mark.claim("hpo", 51)
@pytest.mark.claim("platform", 8)
async def test_population_based_training_with_an_assessor_is_refused() -> None:
    message = await refusal(choice("tuner", "PBTTuner"), choice("assessor", "Medianstop"))

    assert "must not be used with PBTTuner" in message


@pytest.mark.usefixtures("third_party")
async def test_an_assessor_is_refused_beside_a_tuner_that_declares_so() -> None:
    message = await refusal(choice("tuner", "Alone"), choice("assessor", "Medianstop"))

    assert "must not be used with Alone" in message
    algorithms = Algorithms(RegistryCatalog(), ManualChecker())
    await algorithms.validate(
        [choice("tuner", "Lucky"), choice("assessor", "Medianstop")], SPACE, ""
    )


async def test_later_space_is_refused_where_the_first_one_is_kept() -> None:
    first = choice("tuner", "SMAC")
    later = replace(first, replaces_space=True)

    message = await refusal(later)

    assert "'SMAC' is refused: SMAC keeps the search space that it began with" in message
    assert "create a new experiment" in message
    algorithms = Algorithms(RegistryCatalog(), ManualChecker())
    await algorithms.validate([first], SPACE, "")
    await algorithms.validate([choice("tuner", "TPE", replaces_space=True)], SPACE, "")


@pytest.mark.parametrize(
    ("present", "successor", "rule"),
    [
        ("TPE", choice("tuner", "PBTTuner"), "must learn the results of earlier trials"),
        ("PBT", choice("tuner", "TPE"), "cannot take over from PBTTuner"),
        ("PBTTuner", choice("tuner", class_name="own.Tuner"), "cannot take over from PBTTuner"),
    ],
)
async def test_tuner_that_cannot_learn_the_trials_does_not_take_over(
    present: str, successor: RequestedAlgorithm, rule: str
) -> None:
    algorithms = Algorithms(RegistryCatalog(), ManualChecker())

    with pytest.raises(InvalidArgumentError) as caught:
        await algorithms.validate([replace(successor, replaced_tuner=present)], SPACE, "")

    assert caught.value.field == "tuner.name"
    for part in (rule, successor.name or successor.class_name, "create an experiment"):
        assert part in caught.value.message


@pytest.mark.parametrize("present", ["Random", "TPE", "", "since unregistered"])
@pytest.mark.parametrize("successor", ["TPE", "Random", "Portfolio"])
async def test_tuner_that_learns_the_trials_takes_over(present: str, successor: str) -> None:
    algorithms = Algorithms(RegistryCatalog(), ManualChecker())

    found = await algorithms.validate(
        [choice("tuner", successor, replaced_tuner=present)], SPACE, ""
    )

    assert found.warnings == ()


@pytest.mark.parametrize(
    ("enqueued", "expected"),
    [
        (
            {"x": 0.9},
            r"search\.enqueue\[1\] must keep the constraint x <= 0\.5 of the search space",
        ),
        (0.9, r"search\.enqueue\[1\] must be a map .*, got 0\.9"),
    ],
)
async def test_enqueued_configurations_are_checked(enqueued: object, expected: str) -> None:
    algorithms = Algorithms(RegistryCatalog(), ManualChecker())
    space = {**SPACE, "_constraints": ["x <= 0.5"]}
    allowed = {"x": 0.25}

    await algorithms.validate([choice("tuner", "TPE")], space, "", [allowed])
    with pytest.raises(InvalidArgumentError, match=expected) as refused:
        await algorithms.validate([choice("tuner", "TPE")], space, "", [allowed, enqueued])

    assert refused.value.field == "search.enqueue[1]"


async def test_two_ways_of_naming_one_algorithm_are_refused() -> None:
    message = await refusal(choice("tuner", "TPE", class_name="m.C"))

    assert "exactly one" in message


@pytest.mark.claim("hpo", 47)
async def test_bad_class_argument_is_refused_by_name() -> None:
    bad = choice("assessor", "Medianstop", class_args={"start_step": -1})

    assert "start_step" in await refusal(choice("tuner", "TPE"), bad)


async def test_bad_space_is_refused() -> None:
    message = await refusal(choice("tuner", "TPE"), space={"x": {"_type": "no", "_value": []}})

    assert "tuner" in message
    assert "'x'" in message


async def test_several_outcomes_open_spaces_that_are_refused_otherwise() -> None:
    words = {"x": {"_type": "choice", "_value": ["a", "b"]}}
    several = choice("tuner", "GPTuner", several_outcomes=True)

    await Algorithms(RegistryCatalog(), ManualChecker()).validate([several], words, "")

    assert "finite numbers" in await refusal(choice("tuner", "GPTuner"), space=words)


async def test_custom_class_is_refused_with_the_checkers_reason() -> None:
    message = await refusal(choice("tuner", class_name="m.C"), problem="no module m")

    assert "tuner.className cannot be used: no module m" in message


async def test_custom_class_is_tried_under_the_clients_interpreter() -> None:
    checker = ManualChecker()
    algorithms = Algorithms(RegistryCatalog(), checker)
    custom = choice("tuner", class_name="m.C", code_directory="/code")

    result = await algorithms.validate([custom], SPACE, "/usr/bin/python3")

    assert checker.asked == [(ClassChoice("tuner", "", "m.C", "/code"), "/usr/bin/python3")]
    assert result.optimize_mode == ""


async def test_opposite_modes_of_tuner_and_assessor_are_warned_of() -> None:
    algorithms = Algorithms(RegistryCatalog(), ManualChecker())
    tuner = choice("tuner", "TPE", class_args={"optimize_mode": "minimize"})
    assessor = choice("assessor", "Medianstop", class_args={"optimize_mode": "maximize"})

    result = await algorithms.validate([tuner, assessor], SPACE, "")

    assert result.optimize_mode == "minimize"
    assert "give both one mode" in result.warnings[0]


def test_algorithms_are_listed_by_kind() -> None:
    algorithms = Algorithms(RegistryCatalog(), ManualChecker())

    assert {item.name for item in algorithms.list_all("assessor")} >= {"Medianstop"}
    assert len(algorithms.list_all()) > len(algorithms.list_all("assessor"))


async def test_named_algorithm_whose_packages_are_missing_is_refused() -> None:
    message = await refusal(
        choice("tuner", "TPE"), problem="install it with: pip install 'nni[hpo]'"
    )

    assert "tuner.name cannot be used: install it with: pip install 'nni[hpo]'" in message


async def test_external_algorithm_is_not_imported() -> None:
    checker = ManualChecker("anything")
    algorithms = Algorithms(RegistryCatalog(), checker)

    await algorithms.validate([choice("tuner", server_address="host:1")], SPACE, "")

    assert checker.asked == []


async def test_server_is_only_for_a_tuner() -> None:
    assessor = choice("assessor", server_address="host:1")

    message = await refusal(choice("tuner", "Random"), assessor)

    assert "assessor.serverAddress is only for a tuner" in message


async def test_assessor_beside_a_server_is_refused() -> None:
    message = await refusal(
        choice("tuner", server_address="host:1"), choice("assessor", "Medianstop")
    )

    assert "assessor must not be used with a tuner that a server runs" in message


@pytest.mark.parametrize("address", ["host", "host:", ":50080", "http://host"])
async def test_address_of_a_server_that_is_none_is_refused(address: str) -> None:
    message = await refusal(choice("tuner", server_address=address))

    assert "tuner.serverAddress must be host:port" in message
