import numpy as np
import pytest

import nni
from nni.nas.evaluator.trial_reports import (
    CallbackTrialChannel,
    changed_finals,
    present_reporter,
    reports_to,
)
from nni.trial.ports import TrialChannel


def ignore(metric: object) -> None:
    del metric


def test_parameters_and_metrics_are_redirected() -> None:
    model, reported = object(), []

    with reports_to(
        model,
        lambda metric: reported.append(("intermediate", metric)),
        lambda metric: reported.append(("final", metric)),
    ):
        assert nni.get_current_parameter() is model
        assert nni.get_next_parameter() is nni.get_next_parameter() is model
        nni.report_intermediate_result(0.5)
        nni.report_final_result({"default": 0.75})

    assert reported == [("intermediate", 0.5), ("final", {"default": 0.75})]


def test_metrics_arrive_as_an_agent_would_get_them() -> None:
    reported: list[object] = []

    with reports_to(None, reported.append, ignore):
        nni.report_intermediate_result(np.float32(0.5))
        with pytest.raises(TypeError, match="a metric must be a JSON value"):
            nni.report_intermediate_result(object())

    assert reported == [0.5]
    assert type(reported[0]) is float


def test_the_api_is_as_before_after_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(metric: object) -> None:
        raise RuntimeError(f"stop at {metric}")

    with pytest.raises(RuntimeError, match="stop at 1"), reports_to(None, fail, ignore):
        nni.report_intermediate_result(1)

    nni.report_final_result(2)
    assert capsys.readouterr().out.endswith("Final result: 2\n")


def test_redirections_can_be_nested() -> None:
    outer: list[object] = []
    inner: list[object] = []

    with reports_to("outer", outer.append, ignore):
        with reports_to("inner", inner.append, ignore):
            nni.report_intermediate_result(1)
        nni.report_intermediate_result(2)
        assert nni.get_current_parameter() == "outer"

    assert (outer, inner) == ([2], [1])


def test_the_channel_is_one_of_trials() -> None:
    channel: TrialChannel = CallbackTrialChannel("model", ignore, ignore)

    assert channel.parameters(3) == "model"


def test_reporter_of_a_block_reports_there_from_an_inner_block() -> None:
    outer: list[object] = []
    inner: list[object] = []

    with reports_to("outer", outer.append, ignore):
        report = present_reporter()
        with reports_to("inner", inner.append, ignore):
            report("PERIODICAL", 1)
            nni.report_intermediate_result(2)

    assert (outer, inner) == ([1], [2])


def test_results_are_changed_on_their_way() -> None:
    intermediates: list[object] = []
    finals: list[object] = []

    with reports_to("model", intermediates.append, finals.append):
        with changed_finals(lambda metric: [metric, "changed"]):
            nni.report_intermediate_result(1)
            nni.report_final_result(2)
            assert nni.get_next_parameter() == "model"
        nni.report_final_result(3)

    assert (intermediates, finals) == ([1], [[2, "changed"], 3])
