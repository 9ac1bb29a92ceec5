from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import nni
from nni.trial.api import exchange_channel, use_channel, wrap_channel
from tests.support.trial_agent import TrialAgent
from tests.support.trial_channels import InMemoryTrialChannel


@pytest.fixture(autouse=True)
def fresh_process_state() -> Iterator[None]:
    use_channel(None)
    yield
    use_channel(None)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrialAgent]:
    with TrialAgent(tmp_path, {"lr": 0.1, "n": 3, "on": True, "net": {"layers": [1, 2.0]}}) as it:
        for name, value in it.environment().items():
            monkeypatch.setenv(name, value)
        yield it
        use_channel(None)


@pytest.mark.claim("hpo", 1)
def test_outside_an_experiment_there_are_no_parameters_and_standalone_ids() -> None:
    assert nni.get_next_parameter() == {}
    assert nni.get_next_parameter() == {}
    assert nni.get_experiment_id() == nni.get_trial_id() == "STANDALONE"
    assert nni.get_sequence_id() == 0


@pytest.mark.claim("hpo", 2)
def test_outside_an_experiment_results_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    nni.report_intermediate_result(0.5)
    nni.report_final_result({"default": 0.9})

    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("Intermediate result: 0.5")
    assert second.endswith("Final result: {'default': 0.9}")


def test_outside_an_experiment_current_parameters_follow_the_call() -> None:
    assert nni.get_current_parameter() is None
    nni.get_next_parameter()
    assert nni.get_current_parameter() == {}


@pytest.mark.claim("platform", 39)
def test_trial_script_runs_without_an_experiment(tmp_path: Path) -> None:
    script = tmp_path / "trial.py"
    script.write_text(
        "import nni\n"
        "print(nni.get_next_parameter(), nni.get_experiment_id(), nni.get_trial_id(),\n"
        "      nni.get_sequence_id())\n"
        "nni.report_intermediate_result(0.1)\n"
        "nni.report_final_result(0.9)\n"
    )

    ended = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=30
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("{} STANDALONE STANDALONE 0\n")
    assert "0.9" in ended.stdout


@pytest.mark.claim("hpo", 3)
def test_parameters_come_once_and_keep_their_types(agent: TrialAgent) -> None:
    first = nni.get_next_parameter()

    assert first == agent.parameters[0]
    assert [type(first["lr"]), type(first["n"]), type(first["on"])] == [float, int, bool]
    assert [type(part) for part in first["net"]["layers"]] == [int, float]
    assert nni.get_next_parameter() is None


@pytest.mark.claim("hpo", 4)
def test_current_parameters_are_those_given_last(agent: TrialAgent) -> None:
    assert nni.get_current_parameter() is None
    parameters = nni.get_next_parameter()
    nni.get_next_parameter()

    assert nni.get_current_parameter() == parameters
    assert nni.get_current_parameter("lr") == 0.1
    with pytest.raises(KeyError, match="momentum"):
        nni.get_current_parameter("momentum")


def test_one_value_of_parameters_that_are_no_dict_is_a_key_error() -> None:
    use_channel(InMemoryTrialChannel([1, 2]))
    nni.get_next_parameter()

    with pytest.raises(KeyError):
        nni.get_current_parameter("lr")


def test_ids_are_those_of_the_environment(agent: TrialAgent) -> None:
    assert nni.get_experiment_id() == "exp1"
    assert nni.get_trial_id() == "trial1"
    assert nni.get_sequence_id() == 7


def test_metrics_arrive_whole_and_in_order(agent: TrialAgent) -> None:
    nni.get_next_parameter()

    nni.report_intermediate_result(0.5)
    nni.report_intermediate_result({"default": 0.6, "note": "ä\n"})
    nni.report_final_result([1, None, True])

    assert agent.metrics == [
        ("PERIODICAL", 0, 0.5),
        ("PERIODICAL", 1, {"default": 0.6, "note": "ä\n"}),
        ("FINAL", 0, [1, None, True]),
    ]


@pytest.mark.claim("hpo", 7)
def test_dict_with_more_than_the_default_stays_whole(agent: TrialAgent) -> None:
    nni.get_next_parameter()

    nni.report_final_result({"default": 0.9, "loss": 1.2})

    assert agent.metrics == [("FINAL", 0, {"default": 0.9, "loss": 1.2})]


@pytest.mark.claim("hpo", 8)
def test_numbers_that_are_not_finite_arrive(agent: TrialAgent) -> None:
    nni.get_next_parameter()

    for value in (math.nan, math.inf, -math.inf):
        nni.report_intermediate_result(value)

    values = [value for _, _, value in agent.metrics]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


@pytest.mark.parametrize("name", ["report_intermediate_result", "report_final_result"])
def test_report_before_parameters_names_the_missing_call(agent: TrialAgent, name: str) -> None:
    with pytest.raises(AssertionError, match=rf"call nni.get_next_parameter\(\) before nni.{name}"):
        getattr(nni, name)(1)

    assert agent.metrics == []


def test_missing_socket_in_an_experiment_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_PLATFORM", "local")
    monkeypatch.delenv("NNI_TRIAL_SOCKET", raising=False)

    with pytest.raises(RuntimeError, match="NNI_TRIAL_SOCKET must be set where NNI_PLATFORM is"):
        nni.get_next_parameter()


def test_multi_phase_trial_gets_sets_until_there_are_no_more(
    agent: TrialAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MULTI_PHASE", "true")
    agent.parameters = [{"x": 1}, {"x": 2}]

    given = [nni.get_next_parameter() for _ in range(4)]

    assert given == [{"x": 1}, {"x": 2}, None, None]
    assert nni.get_current_parameter() == {"x": 2}


def test_another_channel_can_take_the_agents_place() -> None:
    channel = InMemoryTrialChannel({"x": 1})
    use_channel(channel)

    nni.get_next_parameter()
    nni.report_final_result(2)

    assert channel.metrics == [("FINAL", 2)]


def test_a_channel_can_be_exchanged_for_a_while() -> None:
    outer, inner = InMemoryTrialChannel({"x": 1}), InMemoryTrialChannel({"x": 2})
    use_channel(outer)
    nni.get_next_parameter()

    bring_back = exchange_channel(inner)
    assert nni.get_next_parameter() == {"x": 2}
    nni.report_final_result(3)
    bring_back()
    nni.report_final_result(4)

    assert (inner.metrics, outer.metrics) == ([("FINAL", 3)], [("FINAL", 4)])
    assert nni.get_current_parameter() == {"x": 1}


def test_a_channel_can_be_put_before_another() -> None:
    outer, inner = InMemoryTrialChannel({"x": 1}), InMemoryTrialChannel({"x": 2})
    use_channel(outer)
    nni.get_next_parameter()

    unwrap = wrap_channel(lambda before: inner if before is outer else outer)
    nni.report_final_result(3)
    unwrap()
    nni.report_final_result(4)

    assert (inner.metrics, outer.metrics) == ([("FINAL", 3)], [("FINAL", 4)])


def test_of_many_threads_one_gets_the_parameters(agent: TrialAgent) -> None:
    given: list[object] = []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait(10)
        given.append(nni.get_next_parameter())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [parameters for parameters in given if parameters is not None] == agent.parameters


def test_importing_the_api_early_decides_nothing(agent: TrialAgent) -> None:
    """A warm interpreter imports the API before it has a trial's environment."""
    assert os.environ["NNI_TRIAL_JOB_ID"] == nni.get_trial_id()
    assert nni.get_next_parameter() == agent.parameters[0]
