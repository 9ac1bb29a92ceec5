"""Codec of the host protocol, both ways."""

import json
from typing import Any

import pytest

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.large_work import AT_ONCE_BYTES, FOREIGN_VALUES_LIMIT
from svc_dispatcher.adapters.host_lines import line_of, output_of, payload_bytes, plan_of
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import AlgorithmChoice, ExperimentSetup, Position, Suggestion

AT = Position(3, 1)


def decoded(command: commands.Command, *, eager: bool = False) -> dict[str, Any]:
    line = line_of(command, eager=eager)
    assert line.endswith("\n")
    message: dict[str, Any] = json.loads(line)
    assert message.pop("position") == [3, 1]
    return message


def test_large_line_is_the_same_as_one_that_is_written_at_once() -> None:
    data: dict[str, Any] = {"x": [1, 2.5, None, "ä"], "y": {"_type": "choice"}, "z": [[], {}]}
    command = commands.UpdateSearchSpace(AT, to_value(data))

    stepped = line_of(command, eager=False, size_bytes=AT_ONCE_BYTES + 1)

    assert stepped == line_of(command, eager=False)


@pytest.mark.parametrize(
    "command",
    [
        commands.Recorded(AT, ((1, to_value(None)), (2, to_value("x" * 1000)))),
        commands.TellMetric(AT, "a", 1, 0, True, 0, to_value("x" * 1000), False),
        commands.ImportData(AT, to_value("x" * 1000)),
        commands.ImportTrials(AT, ((to_value("x" * 1000), to_value(1.0)),)),
        commands.ImportCurves(AT, (commands.PastCurve(to_value("x" * 1000), None, (None,)),)),
        commands.ImportReports(AT, (commands.PastReport("a", value=to_value("x" * 1000)),)),
        commands.UpdateSearchSpace(AT, to_value("x" * 1000)),
        commands.AddCustomized(AT, 1, to_value("x" * 1000)),
    ],
)
def test_size_of_a_command_is_that_of_its_values(command: commands.Command) -> None:
    assert 1000 <= payload_bytes(command) < 1100


def test_commands_without_values_have_no_size() -> None:
    assert payload_bytes(commands.Generate(AT, "r", (1,))) == 0
    assert payload_bytes(commands.TellEnd(AT, "a", 1, "SUCCEEDED", customized=False)) == 0


def test_initialize_carries_all_that_a_host_needs() -> None:
    setup = ExperimentSetup(
        experiment_id="exp",
        directory="/root/exp",
        interpreter="",
        tuner=AlgorithmChoice(name="TPE", class_args=to_value({"seed": 1})),
        assessor=None,
        advisor=None,
        search_space=None,
        seed=1,
        log_level="debug",
    )

    message = decoded(commands.Initialize(AT, setup, to_value({"x": 1}), 9), eager=True)

    assert message == {
        "op": "initialize",
        "experiment_id": "exp",
        "tuner": {
            "name": "TPE",
            "class_name": "",
            "code_directory": "",
            "class_args": {"seed": 1},
        },
        "assessor": None,
        "advisor": None,
        "search_space": {"x": 1},
        "plan": None,
        "seed": 9,
        "log_level": "debug",
        "checkpoint": "/root/exp/checkpoint/algorithm.json",
        "eager": True,
    }


def test_initialize_carries_the_end_of_a_log_that_is_known() -> None:
    setup = ExperimentSetup("exp", "/root/exp", "", None, None, None, None, 1, "info")
    command = commands.Initialize(AT, setup, None, 9, log_end=Position(70, 2))

    assert decoded(command)["log_end"] == [70, 2]


def test_the_plan_is_what_a_search_wants_beside_its_tuner() -> None:
    config = config_pb2.ExperimentConfig()
    config.search.duplicates = "replicate"
    assert plan_of(config) is None
    assert plan_of(None) is None

    config.objectives.add(metric="loss", mode=metric_pb2.OPTIMIZE_MODE_MINIMIZE)
    config.constraints.add(metric="cost", max=3)
    config.search.duplicates = "reuse"
    config.search.enqueue.append(to_value({"x": 1}))
    config.search.known.CopyFrom(to_value([{"parameter": {"x": 2}, "value": 1}]))
    config.search.earlier.CopyFrom(to_value([[{"parameter": {"x": 3}, "value": 4}]]))
    config.search.stop.target = 0.0

    assert plan_of(config) == {
        "objectives": [{"metric": "loss", "mode": "minimize"}],
        "constraints": [{"metric": "cost", "max": 3.0}],
        "duplicates": "reuse",
        "enqueue": [{"x": 1}],
        "known": [{"parameter": {"x": 2}, "value": 1}],
        "earlier": [[{"parameter": {"x": 3}, "value": 4}]],
        "stop": {"target": 0.0},
    }


def test_configuration_that_runs_is_not_enqueued_again() -> None:
    config = config_pb2.ExperimentConfig()
    config.search.enqueue.extend([to_value({"x": 1}), to_value({"x": 2})])

    plan = plan_of(config, [to_value({"x": 1}), to_value({"x": 3})])

    assert plan is not None
    assert plan["enqueue"] == [{"x": 2}]


COMMANDS = {
    "generate": (
        commands.Generate(AT, "r", (1, 2)),
        {"op": "generate", "request_id": "r", "parameter_ids": [1, 2], "replayed": False},
    ),
    "recorded": (
        commands.Recorded(AT, ((1, to_value({"x": 1})),)),
        {"op": "recorded", "parameters": [[1, {"x": 1}]]},
    ),
    "metric": (
        commands.TellMetric(AT, "t", 1, 2, True, 3, to_value(0.5), False),
        {"op": "metric", "metric": ["t", 1, 2, True, 3, 0.5, False]},
    ),
    "end": (
        commands.TellEnd(AT, "t", 2, "FAILED", customized=True),
        {"op": "trial_end", "end": ["t", 2, "FAILED", True]},
    ),
    "end with a run time": (
        commands.TellEnd(AT, "t", 2, "SUCCEEDED", customized=False, duration_s=3.5),
        {"op": "trial_end", "end": ["t", 2, "SUCCEEDED", False], "duration_s": 3.5},
    ),
    "import": (
        commands.ImportData(AT, to_value([1])),
        {"op": "import_data", "data": [1]},
    ),
    "import of trials": (
        commands.ImportTrials(AT, ((to_value({"x": 1}), to_value(2)),)),
        {"op": "import_data", "data": [{"parameter": {"x": 1}, "value": 2}], "own": True},
    ),
    "import of trials of several tuners": (
        commands.ImportTrials(
            AT, ((to_value(1), to_value(2)), (to_value(3), to_value(4))), ("", "TPE")
        ),
        {
            "op": "import_data",
            "data": [{"parameter": 1, "value": 2}, {"parameter": 3, "value": 4, "tuner": "TPE"}],
            "own": True,
        },
    ),
    "import of trials with run times": (
        commands.ImportTrials(
            AT, ((to_value(1), to_value(2)), (to_value(3), to_value(4))), durations_s=(None, 3.5)
        ),
        {
            "op": "import_data",
            "data": [{"parameter": 1, "value": 2}, {"parameter": 3, "value": 4, "duration_s": 3.5}],
            "own": True,
        },
    ),
    "import of curves": (
        commands.ImportCurves(
            AT,
            (
                commands.PastCurve(to_value({"x": 1}), (to_value(2),), (to_value(3),)),
                commands.PastCurve(to_value({"x": 2}), None, (to_value(4),)),
            ),
        ),
        {
            "op": "import_curves",
            "curves": [
                {"parameter": {"x": 1}, "value": 2, "intermediate": [3]},
                {"parameter": {"x": 2}, "value": None, "intermediate": [4]},
            ],
        },
    ),
    "import of reports": (
        commands.ImportReports(
            AT,
            (
                commands.PastReport("a", 1, 0, to_value(0.5)),
                commands.PastReport("a", end_state="SUCCEEDED"),
            ),
        ),
        {"op": "import_reports", "reports": [["a", 1, 0, 0.5], ["a", "SUCCEEDED"]]},
    ),
    "space": (
        commands.UpdateSearchSpace(AT, to_value({})),
        {"op": "update_search_space", "search_space": {}},
    ),
    "customized": (
        commands.AddCustomized(AT, 4, to_value({"x": True})),
        {"op": "add_customized", "parameter_id": 4, "parameters": {"x": True}},
    ),
}


@pytest.mark.parametrize(("command", "message"), COMMANDS.values(), ids=COMMANDS.keys())
def test_every_command_has_its_line(command: commands.Command, message: dict[str, Any]) -> None:
    assert decoded(command) == message


OUTPUTS = {
    "done": ({"done": [4, 0]}, answers.Done(Position(4, 0))),
    "ready": (
        {"ready": {"lookahead": True, "assesses": False, "provenance": {"python": "3"}}},
        answers.Ready(True, False, (("python", "3"),)),
    ),
    "ready to learn": (
        {
            "ready": {
                "lookahead": False,
                "assesses": False,
                "provenance": {},
                "learned_metrics": ["default"],
            }
        },
        answers.Ready(False, False, (), ("default",)),
    ),
    "parameters": (
        {
            "parameters": [[1, {"x": 1}, {"a": "b"}]],
            "request_id": "r",
            "exhausted": True,
            "deferred": 2,
            "released": ["/c/0/0"],
        },
        answers.Generated(
            AT,
            "r",
            (Suggestion(1, to_value({"x": 1}), to_value({"a": "b"})),),
            exhausted=True,
            deferred=2,
            released_checkpoints=("/c/0/0",),
        ),
    ),
    "late": (
        {"late": [[1, 2, {}]]},
        answers.Generated(AT, "", (Suggestion(1, to_value(2), to_value({})),)),
    ),
    "stop": ({"stop": "t"}, answers.StopAdvised(AT, "t")),
    "failed": (
        {"failed": {"call": "c", "traceback": "t", "skipped": True}},
        answers.CallFailed(AT, "c", "t", skipped=True),
    ),
    "unbuildable": (
        {"unbuildable": "why", "traceback": "t"},
        answers.Unbuildable(AT, "why", "t"),
    ),
    "diverged": (
        {"diverged": [1, "log", None]},
        answers.Diverged(AT, 1, to_value("log"), to_value(None)),
    ),
}


@pytest.mark.parametrize(("message", "output"), OUTPUTS.values(), ids=OUTPUTS.keys())
def test_every_line_becomes_an_output(message: dict[str, Any], output: answers.Output) -> None:
    assert output_of(json.dumps({"position": [3, 1], **message}).encode()) == output


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[" * 100_000,
        b"7",
        b'{"done": [1, "0"]}',
        b'{"position": [1], "stop": "t"}',
        b'{"position": [1, 0], "what": 1}',
        b'{"position": [1, 0], "stop": 1}',
        b'{"position": [1, 0], "late": [["0", {}, {}]]}',
        b'{"position": [1, 0], "ready": {"lookahead": 1, "assesses": true, "provenance": {}}}',
        b'{"position": [1, 0], "ready": {"lookahead": true, "assesses": true, "provenance": 1}}',
    ],
)
def test_other_lines_are_errors(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"Expecting value|invalid message"):
        output_of(line)


def test_line_with_too_many_values_is_refused_before_it_is_read() -> None:
    line = b"[" + b"{}," * FOREIGN_VALUES_LIMIT + b"{}"

    with pytest.raises(
        ValueError, match="must have at most 200,000 values, got 200,001"
    ) as refused:
        output_of(line + b",{}]")

    assert len(str(refused.value)) < 1_000, "the line has more than 600,000 bytes"
    with pytest.raises(ValueError, match="invalid message") as read:
        output_of(line + b"]")
    assert "must have at most" not in str(read.value)
