from __future__ import annotations

import json

import pytest

from nni.cli.main import DONE, FAILED, REFUSED, main
from nni_proto.common.v1 import metric_pb2
from nni_proto.trial.v1 import trial_service_pb2
from nni_wire.values import to_value
from tests.support.in_memory_manager import InMemoryManager


@pytest.fixture
def two(manager: InMemoryManager) -> InMemoryManager:
    for number, name in enumerate(("aaaa1111", "bbbb2222")):
        config = manager.add_experiment(name).config
        config.tuner.name = ("TPE", "Random")[number]
        config.tuner.class_args.CopyFrom(to_value({"optimize_mode": "minimize"}))
        manager.add_trial(name, f"t{number}000", result=3 - number)
        manager.add_trial(name, f"t{number}001", result=2 - number)
        report = metric_pb2.Metric(type=metric_pb2.METRIC_TYPE_PERIODICAL, value=to_value(9))
        manager.metrics[name] = [
            trial_service_pb2.TrialMetric(trial_id=f"t{number}001", metric=report)
        ]
    return manager


def test_comparison_shows_configuration_regret_and_curves(
    two: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "compare", "aaaa", "bbbb"]) == DONE

    shown = " ".join(capsys.readouterr().out.split())
    assert "Metric 'default', minimize" in shown
    assert "tuner.name TPE Random" in shown
    assert "Trials Best aaaa1111 Best bbbb2222 Regret aaaa1111 Regret bbbb2222" in shown
    assert "2 2 1 1 0" in shown
    assert "Step aaaa1111 bbbb2222 1 9 9" in shown


def test_json_has_all_of_it(two: InMemoryManager, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "compare", "aaaa", "bbbb", "--json"]) == DONE

    document = json.loads(capsys.readouterr().out)
    assert [one["best"] for one in document["experiments"]] == [2.0, 1.0]
    assert document["regret"][-1]["regret"] == [1.0, 0.0]
    assert document["bestCurves"] == [[1, 9.0, 9.0]]


def test_unknown_experiment_is_named(
    two: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "compare", "aaaa", "cccc"]) == FAILED

    assert "'cccc'" in capsys.readouterr().err


def test_opposite_directions_are_refused_unless_one_is_named(
    two: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = to_value({"optimize_mode": "maximize"})
    two.known["aaaa1111"].config.tuner.class_args.CopyFrom(arguments)

    assert main(["experiment", "compare", "aaaa", "bbbb"]) == REFUSED
    assert "--mode" in capsys.readouterr().err
    assert main(["experiment", "compare", "aaaa", "bbbb", "--mode", "maximize"]) == DONE


@pytest.fixture
def one(manager: InMemoryManager) -> InMemoryManager:
    config = manager.add_experiment("aaaa1111").config
    config.tuner.name = "Portfolio"
    config.tuner.class_args.CopyFrom(to_value({"optimize_mode": "minimize"}))
    for number, tuner in enumerate(("TPE", "Random", "TPE")):
        trial = manager.add_trial("aaaa1111", f"t000{number}", result=3 - number)
        trial.provenance.CopyFrom(to_value({"algorithm": "Portfolio", "tuner": tuner}))
    manager.add_trial("aaaa1111", "t0003", result=0.5)
    return manager


def test_tuners_of_one_experiment_are_compared(
    one: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "compare", "aaaa"]) == DONE

    shown = " ".join(capsys.readouterr().out.split())
    assert "Tuner Trials WithResult Best Regret Median" in shown
    assert "TPE 2 2 1 0.5 2" in shown
    assert "Random 1 1 2 1.5 2" in shown
    assert "(added by hand) 1 1 0.5 0 0.5" in shown


def test_json_of_the_tuners_of_one_experiment(
    one: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "compare", "aaaa", "--json"]) == DONE

    document = json.loads(capsys.readouterr().out)
    assert (document["experiment"], document["mode"]) == ("aaaa1111", "minimize")
    assert document["tuners"][0] == {
        "tuner": "TPE",
        "trials": 2,
        "withResult": 2,
        "best": 1.0,
        "regret": 0.5,
        "median": 2.0,
    }


def test_experiment_of_one_tuner_needs_a_second_experiment(
    two: InMemoryManager, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", "compare", "aaaa"]) == REFUSED

    assert "must have trials of two tuners to compare them, got none" in capsys.readouterr().err
