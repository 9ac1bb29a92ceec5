"""Command loop of the host."""

import importlib
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from nni.hpo import commands
from nni.hpo.host.checkpoints import CheckpointSchedule
from nni.hpo.host.command_loop import CommandLoop, digest_with

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


class MemoryPipe:
    """Commands given at once, answers kept."""

    def __init__(self, *given: dict[str, Any]) -> None:
        self.eager = False
        self.given = given
        self.said: list[dict[str, Any]] = []

    def commands(self) -> Iterable[dict[str, Any]]:
        return self.given

    def write(self, message: dict[str, Any]) -> None:
        self.said.append(message)


def initialize(**changes: Any) -> dict[str, Any]:
    command = {
        "op": "initialize",
        "experiment_id": "exp",
        "position": [1, 1],
        "tuner": {"name": "Random", "class_args": {}},
        "assessor": None,
        "advisor": None,
        "search_space": SPACE,
        "seed": 3,
        "log_level": "info",
        "eager": False,
    }
    return command | changes


def generate(request_id: str = "r", *ids: int, replayed: bool = False) -> dict[str, Any]:
    return {
        "op": "generate",
        "position": [2, 0],
        "request_id": request_id,
        "parameter_ids": list(ids),
        "replayed": replayed,
    }


def run(*given: dict[str, Any]) -> list[dict[str, Any]]:
    pipe = MemoryPipe(*given)
    CommandLoop(pipe, configure_log=lambda _: None).run()
    return pipe.said


def test_ready_algorithm_says_what_it_can() -> None:
    (ready,) = run(initialize())

    assert ready["position"] == [1, 1]
    assert ready["ready"]["lookahead"]
    assert not ready["ready"]["assesses"]
    assert ready["ready"]["provenance"]["python"]


def test_request_is_answered_with_its_ids_and_position() -> None:
    _, answer = run(initialize(), generate("r", 4, 5))

    assert answer["position"] == [2, 0]
    assert answer["request_id"] == "r"
    assert [item[0] for item in answer["parameters"]] == [4, 5]
    assert answer["parameters"][0][2] == {"algorithm": "Random", "seed": 3, "results": 0}


def test_replayed_request_is_made_but_not_said() -> None:
    _, answer = run(initialize(), generate("a", 0, replayed=True), generate("b", 1))
    _, first, second = run(initialize(), generate("a", 0), generate("b", 1))

    assert answer == second
    assert first["parameters"] != second["parameters"]


def test_algorithm_that_cannot_be_built_says_why_and_is_the_end() -> None:
    tuner = {"name": "Random", "class_args": {"optimize_mode": "sideways"}}

    (unbuildable,) = run(initialize(tuner=tuner), generate("r", 0))

    assert "optimize_mode" in unbuildable["unbuildable"]
    assert "Traceback" in unbuildable["traceback"]


def test_bad_space_is_the_end_too() -> None:
    (unbuildable,) = run(initialize(search_space={"x": {"_type": "no"}}))

    assert "'x'" in unbuildable["unbuildable"]


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "loop_algorithms.py").write_text(
        """
import random
from nni.tuner import Tuner
from nni.runtime.msg_dispatcher_base import MsgDispatcherBase
from nni.runtime.protocol import CommandType, send

class Failing(Tuner):
    def update_search_space(self, search_space): ...
    def receive_trial_result(self, *args, **kwargs): ...
    def generate_parameters(self, parameter_id, **kwargs):
        raise RuntimeError("cannot")

class Careless(Failing):
    def generate_parameters(self, parameter_id, **kwargs):
        import numpy
        return [random.random(), numpy.random.random()]

class Eager(Careless):
    prepared = []
    def prepare_parameters(self):
        self.prepared.append(1)

class Two(MsgDispatcherBase):
    def handle_update_search_space(self, data): ...
    def handle_request_trial_jobs(self, data):
        for number in range(data):
            send(CommandType.NewTrialJob, '{"parameter_id": %d, "parameters": {}}' % number)
"""
    )
    return tmp_path


def custom(name: str, folder: Path) -> dict[str, Any]:
    return {
        "name": "",
        "class_name": f"loop_algorithms.{name}",
        "code_directory": str(folder),
        "class_args": {},
    }


def test_exception_in_a_request_is_reported_and_is_the_end(code: Path) -> None:
    said = run(initialize(tuner=custom("Failing", code)), generate("r", 0), generate("s", 1))

    failed = said[-1]["failed"]
    assert len(said) == 2
    assert (failed["call"], failed["skipped"]) == ("generate_parameters", False)
    assert "RuntimeError: cannot" in failed["traceback"]


def test_global_generators_are_seeded_for_custom_algorithms(code: Path) -> None:
    first, again, other = (
        run(initialize(tuner=custom("Careless", code), seed=seed), generate("r", 0))[-1]
        for seed in (1, 1, 2)
    )

    assert first["parameters"][0][1] == again["parameters"][0][1]
    assert first["parameters"][0][1] != other["parameters"][0][1]


def test_advisor_is_connected_to_its_host(code: Path) -> None:
    try:
        said = run(initialize(tuner=None, advisor=custom("Two", code)), generate("r", 8, 9))
    finally:
        commands.connect(None)

    assert [item[0] for item in said[-1]["parameters"]] == [8, 9]
    assert said[0]["ready"]["assesses"]


def test_other_commands_reach_the_algorithm() -> None:
    position = {"position": [3, 0]}
    said = run(
        initialize(assessor={"name": "Medianstop", "class_args": {}}),
        generate("r", 0),
        {"op": "metric", "metric": ["t", 1, 0, False, 0, 0.5, False], **position},
        {"op": "metric", "metric": ["t", 1, 0, True, 0, 0.5, False], **position},
        {"op": "trial_end", "end": ["t", 0, "SUCCEEDED", False], **position},
        {"op": "import_data", "data": [], **position},
        {"op": "import_curves", "curves": [], **position},
        {"op": "import_reports", "reports": [["u", 1, 0, 0.5], ["u", "SUCCEEDED"]], **position},
        {"op": "recorded", "parameters": [[1, {"x": 0.1}]], **position},
        {"op": "update_search_space", "search_space": "no map", **position},
        {"op": "add_customized", "parameter_id": 2, "parameters": {}, **position},
    )

    assert [next(iter(message)) for message in said] == [
        "ready",
        "parameters",
        "diverged",
        "failed",
    ]
    assert said[-1]["failed"]["call"] == "update_search_space"
    assert said[-1]["failed"]["skipped"]


def test_advisors_see_the_metric_that_is_the_objective() -> None:
    advisor = {"name": "Hyperband", "class_args": {"R": 3, "exec_mode": "serial"}}
    plan = {"objectives": [{"metric": "loss", "mode": "minimize"}]}
    start = initialize(tuner=None, advisor=advisor, plan=plan)
    ids = list(range(3))
    first = run(start, generate("r", *ids))[1]["parameters"]
    commands: list[dict[str, Any]] = []
    for parameter_id, parameters, _ in first:
        trial, value = f"t{parameter_id}", {"loss": parameters["x"], "default": -parameters["x"]}
        metric = (trial, 1, parameter_id, True, 0, value, False)
        commands.append({"op": "metric", "position": [3, 2 * parameter_id], "metric": metric})
        end = (trial, parameter_id, "SUCCEEDED", False)
        commands.append({"op": "trial_end", "position": [3, 2 * parameter_id + 1], "end": end})

    again = generate("s", 3) | {"position": [4, 0]}
    promoted = run(start, generate("r", *ids), *commands, again)[-1]["parameters"][0][1]

    assert promoted["TRIAL_BUDGET"] == 3
    assert promoted["x"] == min(parameters["x"] for _, parameters, _ in first)


def test_preparing_between_commands_changes_no_answer() -> None:
    tuner = {"name": "GPTuner", "class_args": {"cold_start_num": 2, "ask_time_limit": 0.01}}
    given = [initialize(tuner=tuner)]
    for number in range(5):
        value = [f"t{number}", 0, number, True, 0, 0.1 * number, False]
        given += [generate("r", number), {"op": "metric", "position": [3, 0], "metric": value}]
    plain, prepared = MemoryPipe(*given), MemoryPipe()

    CommandLoop(plain, configure_log=lambda _: None).run()
    loop = CommandLoop(prepared, configure_log=lambda _: None)
    loop.prepare()
    for command in given:
        loop.handle(command)
        loop.prepare()

    assert prepared.said == plain.said


def test_proposals_are_prepared_after_a_result(code: Path) -> None:
    loop = CommandLoop(MemoryPipe(), configure_log=lambda _: None)
    loop.handle(initialize(tuner=custom("Eager", code)))
    prepared = importlib.import_module("loop_algorithms").Eager.prepared
    prepared.clear()
    counts = []
    for command in (
        generate("r", 0),
        {"op": "metric", "position": [3, 0], "metric": ["t", 0, 0, True, 0, 0.5, False]},
    ):
        loop.handle(command)
        loop.prepare()
        counts.append(len(prepared))

    assert counts == [0, 1]


def result(trial_id: str, value: object, *, customized: bool = False) -> dict[str, Any]:
    return {
        "op": "metric",
        "position": [3, 0],
        "metric": [trial_id, 1, 0, True, 0, value, customized],
    }


OBJECTIVES = {"objectives": [{"metric": "loss", "mode": "minimize"}]}


@pytest.mark.parametrize(
    ("changes", "metrics"),
    [
        ({}, ("default",)),
        ({"plan": OBJECTIVES}, ("loss",)),
        ({"tuner": None, "advisor": {"name": "Hyperband", "class_args": {"R": 4}}}, ("default",)),
        (
            {
                "tuner": None,
                "advisor": {
                    "name": "MOASHA",
                    "class_args": {"optimize_mode": {"a": "maximize", "b": "minimize"}},
                },
            },
            ("a", "b"),
        ),
    ],
)
def test_ready_algorithm_names_the_metrics_that_it_learns_from(
    changes: dict[str, Any], metrics: tuple[str, ...]
) -> None:
    (ready,) = run(initialize(**changes))

    assert tuple(ready["ready"]["learned_metrics"]) == metrics


def test_custom_algorithm_learns_from_results_as_they_are(code: Path) -> None:
    (ready,) = run(initialize(tuner=custom("Careless", code)))

    assert tuple(ready["ready"]["learned_metrics"]) == ()


@pytest.mark.parametrize("value", [{"accuracy": 0.5}, "0.5", float("nan"), None, True])
def test_result_without_a_number_is_an_error_in_the_log(
    value: object, caplog: pytest.LogCaptureFixture
) -> None:
    run(initialize(), generate("r", 0), result("Ab3dE", value))

    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    text = record.getMessage()
    assert "learns nothing from the final result of trial Ab3dE" in text
    assert "report a number" in text
    assert "'default'" in text


def test_results_that_can_be_learned_from_leave_no_error(caplog: pytest.LogCaptureFixture) -> None:
    numbers = (0.5, 1, float("inf"), {"default": 0.5, "note": "x"})
    run(
        initialize(),
        generate("r", 0),
        *(result("t", value) for value in numbers),
        result("by hand", "text", customized=True),
    )

    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_many_results_without_a_number_leave_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    run(initialize(), generate("r", 0), *(result(f"t{index}", "text") for index in range(250)))

    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [error.rpartition("(")[2] for error in errors] == [
        "1 such results so far)",
        "10 such results so far)",
        "100 such results so far)",
    ]


class AlwaysDue(CheckpointSchedule):
    """Schedule of a checkpoint at every opportunity."""

    def __call__(self) -> bool:
        return True


def history(path: Path, results: list[float]) -> list[dict[str, Any]]:
    """Return the commands of an experiment whose trials had these results, one after another."""
    commands = [
        initialize(tuner={"name": "TPE", "class_args": {}}, plan=None, checkpoint=str(path))
    ]
    for number, result in enumerate(results):
        at = 10 * number + 10
        request = generate(f"r{number}", number, replayed=True)
        commands += [
            {**request, "position": [at, 0]},
            {
                "op": "metric",
                "position": [at + 5, 0],
                "metric": (f"t{number}", 1, number, True, 0, result, False),
            },
            {
                "op": "trial_end",
                "position": [at + 5, 1],
                "end": (f"t{number}", number, "SUCCEEDED", False),
            },
        ]
    return commands


def replay(commands: list[dict[str, Any]], *, ask: bool = True) -> list[Any]:
    """Run the commands of a log on a new host, then a request; return what it proposes."""
    first, *rest = commands
    request = {**generate("new", 90), "position": [rest[-1]["position"][0] + 1, 0]}
    pipe = MemoryPipe(
        {**first, "log_end": rest[-1]["position"]}, *rest, *([request] if ask else [])
    )
    CommandLoop(pipe, lambda _: None, AlwaysDue()).run()
    return [message["parameters"] for message in pipe.said if "parameters" in message]


RESULTS = [0.1 * number for number in range(25)]


def test_checkpoint_beyond_the_log_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, unused = tmp_path / "algorithm.json", tmp_path / "unused.json"
    replay(history(path, RESULTS))

    after_the_cut = replay(history(path, RESULTS[:22]))

    assert after_the_cut == replay(history(unused, RESULTS[:22]))
    assert "the log ends at" in caplog.text


def test_checkpoint_of_a_log_that_went_another_way_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, unused = tmp_path / "algorithm.json", tmp_path / "unused.json"
    other = [*RESULTS[:22], *(9.0 - result for result in RESULTS)]
    replay(history(path, RESULTS))

    ended = replay(history(path, other))
    again = replay(history(path, other))

    assert ended == []
    assert again == replay(history(unused, other))
    assert "differs" in caplog.text


def test_checkpoint_of_the_same_log_is_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, unused = tmp_path / "algorithm.json", tmp_path / "unused.json"
    caplog.set_level("INFO")
    replay(history(path, RESULTS[:22]), ask=False)

    longer = replay(history(path, RESULTS))

    assert longer == replay(history(unused, RESULTS))
    assert "restored from its checkpoint" in caplog.text
    assert "refused" not in caplog.text


def test_digest_is_that_of_the_text_in_earlier_checkpoints() -> None:
    command = {"op": "metric", "position": [5, 0], "metric": ["t", 1, 0, True, 0, 0.5, False]}

    digest = digest_with(7, command)

    text = "[[5, 0], 'metric', ['t', 1, 0, True, 0, 0.5, False]]"
    assert digest == zlib.crc32(text.encode(), 7)


def test_command_that_changes_nothing_is_in_no_digest() -> None:
    assert digest_with(7, {"op": "prepare", "position": [5, 0]}) == 7


def cost_aware_proposals(*, timed: bool) -> list[Any]:
    """Return the parameters of nine trials, one after the other, that take ever longer."""
    commands: list[dict[str, Any]] = []
    for number in range(9):
        trial, at = f"t{number}", 10 + 3 * number
        commands += [
            generate("r", number) | {"position": [at, 0]},
            {
                "op": "metric",
                "position": [at + 1, 0],
                "metric": [trial, 1, number, True, 0, number % 4, False],
            },
            {
                "op": "trial_end",
                "position": [at + 2, 0],
                "end": [trial, number, "SUCCEEDED", False],
                **({"duration_s": 3.0**number} if timed else {}),
            },
        ]
    auto = {"name": "auto", "class_args": {"cost_aware": True, "optimize_mode": "minimize"}}
    return [
        message["parameters"][0][1]
        for message in run(initialize(tuner=auto), *commands)
        if "parameters" in message
    ]


def test_run_times_reach_a_cost_aware_tuner_and_a_replay_repeats_its_proposals() -> None:
    timed = cost_aware_proposals(timed=True)

    assert len(timed) == 9
    assert timed == cost_aware_proposals(timed=True)
    assert timed != cost_aware_proposals(timed=False)


@pytest.mark.parametrize(
    ("own", "over"), [({"own": True}, True), ({"own": False}, False), ({}, False)]
)
def test_results_of_the_search_itself_count_for_its_stopping_rules(
    own: dict[str, bool], over: bool
) -> None:
    samples = [{"parameter": {"x": 0.1 * n}, "value": 1.0} for n in range(4)]
    data = {"op": "import_data", "position": [1, 5], "data": samples, **own}

    said = run(initialize(plan={"stop": {"no_improvement": 2}}), data, generate("r", 0))

    assert (not said[-1]["parameters"]) is over
    assert said[-1]["exhausted"] is over


def test_checkpoint_of_another_plan_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, unused = tmp_path / "algorithm.json", tmp_path / "unused.json"
    caplog.set_level("INFO")
    plan = {"duplicates": "reuse"}
    replay(history(path, RESULTS))
    first, *rest = history(path, RESULTS)
    anew, *_ = history(unused, RESULTS)

    proposed = replay([{**first, "plan": plan}, *rest])

    assert proposed == replay([{**anew, "plan": plan}, *rest])
    assert "restored from its checkpoint" not in caplog.text


@pytest.mark.parametrize(("level", "logged"), [("debug", True), ("info", False)])
def test_each_command_is_logged_at_level_debug(
    caplog: pytest.LogCaptureFixture, level: str, logged: bool
) -> None:
    def configure_log(name: str) -> None:
        caplog.set_level(name.upper(), "nni.hpo.host.command_loop")

    pipe = MemoryPipe(initialize(log_level=level), generate("r", 0))
    CommandLoop(pipe, configure_log=configure_log).run()

    assert ("generate of event [2, 0]" in caplog.messages) is logged
