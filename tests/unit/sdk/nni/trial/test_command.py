from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from nni.trial.command import DONE, FAILED, MISUSED, find, main
from tests.support.trial_agent import TrialAgent

PARAMETERS = {
    "lr": 0.001,
    "name": "adam w",
    "on": True,
    "none": None,
    "net": {"_name": "cnn", "layers": [64, {"k": 3}]},
    "a.b": 1,
    "a": {"b": 2, "c/d": 3},
}


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrialAgent]:
    with TrialAgent(tmp_path, PARAMETERS) as it:
        for name, value in it.environment().items():
            monkeypatch.setenv(name, value)
        yield it


@pytest.mark.parametrize(
    ("key", "printed"),
    [
        ("lr", "0.001"),
        ("name", "adam w"),
        ("on", "true"),
        ("none", "null"),
        ("net/_name", "cnn"),
        ("net.layers.1.k", "3"),
        ("net/layers", '[64, {"k": 3}]'),
        ("a.b", "1"),
        ("a/b", "2"),
        ("a/c/d", "3"),
    ],
)
def test_get_prints_one_parameter(
    agent: TrialAgent, capsys: pytest.CaptureFixture[str], key: str, printed: str
) -> None:
    assert main(["get", key]) == DONE
    assert capsys.readouterr().out == f"{printed}\n"


def test_get_prints_all_parameters_as_json(
    agent: TrialAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    agent.parameters = [{"x": [1, 2]}]

    assert main(["get"]) == DONE
    assert capsys.readouterr().out == '{"x": [1, 2]}\n'


def test_missing_key_lists_what_there_is(
    agent: TrialAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["get", "net/momentum"]) == FAILED
    assert "no parameter 'momentum'; there are: _name, layers" in capsys.readouterr().err


def test_key_inside_a_number_has_no_parts() -> None:
    with pytest.raises(LookupError, match="there are: none"):
        find({"lr": 1}, "lr/x")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.93", 0.93),
        ("-1", -1),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ('{"default": 1, "k": "v"}', {"default": 1, "k": "v"}),
        ('"text"', "text"),
        ("[1, 2]", [1, 2]),
    ],
)
def test_metrics_are_numbers_or_json(agent: TrialAgent, text: str, value: object) -> None:
    assert main(["report", text]) == DONE
    assert main(["final", text]) == DONE
    assert agent.metrics == [("PERIODICAL", 0, value), ("FINAL", 0, value)]


def test_nan_can_be_reported(agent: TrialAgent) -> None:
    assert main(["report", "nan"]) == DONE
    assert math.isnan(agent.metrics[0][2])


@pytest.mark.parametrize(
    "words", [[], ["fetch"], ["report"], ["report", "1", "2"], ["get", "a", "b"], ["final", "1_0"]]
)
def test_wrong_usage_is_explained(
    agent: TrialAgent, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert main(words) == MISUSED
    assert "usage: nni-trial" in capsys.readouterr().err
    assert agent.metrics == []


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == DONE
    assert capsys.readouterr().out.startswith("usage: nni-trial get [KEY]")


def test_refusal_of_the_agent_is_an_error(
    agent: TrialAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    agent.refusal = "the trial has ended"

    assert main(["final", "1"]) == FAILED
    assert "the trial has ended" in capsys.readouterr().err


def test_metric_that_is_too_long_is_an_error(
    agent: TrialAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["final", '"' + "x" * 1_000_000 + '"']) == FAILED
    assert "at most 1000000 bytes" in capsys.readouterr().err


def test_missing_variable_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NNI_PLATFORM", "local")
    monkeypatch.delenv("NNI_TRIAL_SOCKET", raising=False)

    assert main(["get"]) == FAILED
    assert "NNI_TRIAL_SOCKET must be set" in capsys.readouterr().err


def test_outside_an_experiment_there_is_nothing_to_get_and_reports_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["get"]) == DONE
    assert main(["final", "0.9"]) == DONE

    first, second = capsys.readouterr().out.splitlines()
    assert first == "{}"
    assert second.endswith("Final result: 0.9")


def test_checkpoint_has_the_step_of_the_command_line(agent: TrialAgent) -> None:
    assert main(["checkpoint", "-3"]) == main(["checkpoint"]) == DONE

    assert agent.checkpoints == [-3, None]


def test_checkpoint_that_is_not_saved_fails(
    agent: TrialAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    agent.checkpoint_warning = "the disk is full"

    assert main(["checkpoint", "3"]) == FAILED
    assert "the disk is full" in capsys.readouterr().err


def test_step_that_is_no_integer_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoint", "2.5"]) == MISUSED
    assert "STEP must be an integer" in capsys.readouterr().err
