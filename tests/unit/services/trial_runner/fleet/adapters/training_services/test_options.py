import platform
import sys

import pytest

from svc_trial_runner.fleet.adapters.training_services.options import (
    option_problems,
    parse_options,
    whole_section,
)
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.domain.section_values import POLL_S


def test_jobs_without_options_have_python_and_processor_of_this_machine() -> None:
    options = parse_options({})

    assert options.python == "python3"
    assert options.python_version == sys.version_info[:2]
    assert options.platform_tag == f"manylinux_2_17_{platform.machine()}"
    assert options.reuse_mode


def test_options_are_those_of_the_section() -> None:
    section = {
        "python": "/opt/python3.12",
        "pythonVersion": "3.12",
        "platformTag": "musllinux_1_2_aarch64",
        "pythonPath": "/opt",
        "setupLines": ["module load cuda"],
        "pollIntervalSeconds": 2,
        "reuseMode": False,
    }

    options = parse_options(section)

    assert option_problems(section) == []
    assert (options.python, options.python_version) == ("/opt/python3.12", (3, 12))
    assert options.platform_tag == "musllinux_1_2_aarch64"
    assert (options.python_path, options.setup_lines) == ("/opt", ("module load cuda",))
    assert (options.poll_interval_s, options.reuse_mode) == (2.0, False)


@pytest.mark.parametrize("version", ["3.10", "2.7", "3", 3.11, "3.x"])
def test_version_that_no_agent_runs_with_is_a_problem(version: object) -> None:
    (problem,) = option_problems({"pythonVersion": version})

    assert (problem.field, problem.value) == ("pythonVersion", repr(version))
    assert "must be a version >= 3.11" in problem.rule


def test_interval_that_is_too_short_is_a_problem() -> None:
    assert [one.field for one in option_problems({"pollIntervalSeconds": 0})] == [
        "pollIntervalSeconds"
    ]


@pytest.mark.parametrize("interval", [float("nan"), 1e9, True, "1"])
def test_interval_that_is_no_number_counts_as_not_given(interval: object) -> None:
    assert parse_options({"pollIntervalSeconds": interval}) == parse_options({})


def test_section_of_the_service_has_its_secrets() -> None:
    options = {"queue": "long", "hosts": [{"name": "a"}]}
    secrets = {"password": "hidden", "hosts[0].token": "hidden too"}

    assert whole_section(PlatformSection("queue", options, secrets)) == {
        "queue": "long",
        "password": "hidden",
        "hosts": [{"name": "a", "token": "hidden too"}],
    }


def test_long_version_is_shown_by_its_first_80_characters() -> None:
    (problem,) = option_problems({"pythonVersion": "a" * 100})

    assert problem.value == f"'{'a' * 79}"


@pytest.mark.parametrize(("interval", "seconds"), [(1e6, 1e6), (1_000_001, POLL_S), (7, 7.0)])
def test_interval_is_at_most_a_million_seconds(interval: float, seconds: float) -> None:
    assert parse_options({"pollIntervalSeconds": interval}).poll_interval_s == seconds


def test_first_version_of_an_agent_is_allowed() -> None:
    assert option_problems({"pythonVersion": "3.11"}) == []


@pytest.mark.parametrize("interval", [float("inf"), 10**400, -(10**400), None, [1]])
def test_interval_that_no_clock_has_counts_as_not_given(interval: object) -> None:
    assert parse_options({"pollIntervalSeconds": interval}).poll_interval_s == POLL_S


@pytest.mark.parametrize(
    ("name", "field"),
    [("python", "python"), ("platformTag", "platform_tag"), ("pythonPath", "python_path")],
)
def test_text_of_a_wrong_type_counts_as_not_given(name: str, field: str) -> None:
    assert parse_options({name: 7}) == parse_options({})
    assert getattr(parse_options({name: " a "}), field) == "a"


def test_reuse_is_refused_by_false_alone() -> None:
    assert parse_options({"reuseMode": None}).reuse_mode
    assert parse_options({"setupLines": "a\nb"}).setup_lines == ("a", "b")
    assert parse_options({"setupLines": [7]}).setup_lines == ()


@pytest.mark.parametrize("version", ["3.1111", "3.11.1", "4.0", " 3.12", "3.12\n", ""])
def test_text_that_is_no_version_is_a_problem(version: str) -> None:
    (problem,) = option_problems({"pythonVersion": version})

    assert problem.rule == "must be a version >= 3.11, as text such as '3.11'"
    assert parse_options({"pythonVersion": version}).python_version == sys.version_info[:2]


def test_secret_of_the_section_wins_over_its_option() -> None:
    section = PlatformSection("queue", {"password": "shown"}, {"password": "hidden"})

    assert whole_section(section) == {"password": "hidden"}
