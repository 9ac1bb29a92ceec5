"""The dispatcher with tuners, assessors and advisors of the user."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nni_proto.experiment.v1 import event_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value, to_value
from tests.integration.dispatcher.conftest import Dispatcher, soon
from tests.support.scripted_manager import (
    ScriptedManager,
    custom,
    ended,
    metric,
    named,
    scheduled,
    trial_of,
)

Code = Callable[[str], Path]

RECORDER = """
import json, os
from nni.tuner import Tuner
import nni

class Recorder(Tuner):
    def __init__(self, limit=100):
        self.limit = limit
        self.note("__init__", limit)
    def note(self, *words):
        with open("calls.txt", "a") as calls:   # relative: the working directory is the log folder
            calls.write(json.dumps(words) + "\\n")
    def update_search_space(self, search_space):
        self.note("update_search_space", search_space)
    def generate_parameters(self, parameter_id, **kwargs):
        if parameter_id >= self.limit:
            raise nni.NoMoreTrialError("no more")
        self.note("generate_parameters", parameter_id)
        return {"value": parameter_id * 10}
    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        self.note("receive_trial_result", parameter_id, parameters, value)
    def trial_end(self, parameter_id, success, **kwargs):
        self.note("trial_end", parameter_id, success)
    def import_data(self, data):
        self.note("import_data", data)
"""

SIMPLE = """
import os, time, random
from nni.tuner import Tuner

class Base(Tuner):
    def update_search_space(self, search_space):
        pass
    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
    def generate_parameters(self, parameter_id, **kwargs):
        return {"value": parameter_id}
"""


def calls_of(manager: ScriptedManager) -> list[str]:
    path = manager.log_directory / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.claim("hpo", 41)
@pytest.mark.claim("hpo", 45)
async def test_custom_tuner_is_called_in_the_documented_order(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(RECORDER)
    await manager.create({"any": "space"}, tuner=custom("algorithms.Recorder", folder, limit=2))

    answer = await manager.answer(await manager.ask(3))
    await manager.schedule(answer)
    await manager.finish(0, 0.5)
    await manager.append(ended(1, trial_pb2.TRIAL_STATE_FAILED))
    await soon(lambda: len(calls_of(manager)) == 7)

    assert answer.exhausted
    assert calls_of(manager) == [
        '["__init__", 2]',
        '["update_search_space", {"any": "space"}]',
        '["generate_parameters", 0]',
        '["generate_parameters", 1]',
        '["receive_trial_result", 0, {"value": 0}, 0.5]',
        '["trial_end", 0, true]',
        '["trial_end", 1, false]',
    ]


@pytest.mark.claim("hpo", 42)
async def test_empty_list_ends_the_creation_of_trials(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(
        SIMPLE
        + """
class Empty(Base):
    def generate_multiple_parameters(self, parameter_id_list, **kwargs):
        return []
"""
    )
    await manager.create({}, tuner=custom("algorithms.Empty", folder))

    answer = await manager.answer(await manager.ask(2))

    assert not answer.parameters
    assert answer.exhausted


async def test_deferred_parameters_come_when_a_result_allows_it(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(
        SIMPLE
        + """
from nni.hpo.base import DEFERRED

class Later(Base):
    def __init__(self):
        self.waiting = []
    def generate_multiple_parameters(self, parameter_id_list, st_callback=None, **kwargs):
        self.start = st_callback
        first, *rest = parameter_id_list
        self.waiting += rest
        return [{"value": first}] + [DEFERRED] * len(rest)
    def trial_end(self, parameter_id, success, **kwargs):
        if self.waiting:
            self.start(self.waiting.pop(0), {"value": "late"})
"""
    )
    await manager.create({}, tuner=custom("algorithms.Later", folder))
    answer = await manager.answer(await manager.ask(3))
    await manager.schedule(answer)

    await manager.finish(0, 1.0)
    late = await manager.answer("")

    assert (answer.exhausted, answer.deferred) == (False, 2)
    assert [item.parameter_id for item in late.parameters] == [1]
    assert from_value(late.parameters[0].parameters) == {"value": "late"}


@pytest.mark.claim("hpo", 43)
async def test_custom_assessor_gets_growing_histories(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(
        """
import json
from nni.assessor import Assessor, AssessResult

class Watcher(Assessor):
    def assess_trial(self, trial_job_id, trial_history):
        with open("calls.txt", "a") as calls:
            calls.write(json.dumps([trial_job_id, trial_history]) + "\\n")
        return AssessResult.Bad if len(trial_history) == 3 else AssessResult.Good
"""
    )
    await manager.create(
        {"x": {"_type": "choice", "_value": [1]}},
        tuner=named("Random"),
        assessor=custom("algorithms.Watcher", folder),
    )
    await manager.generate(1)

    first = [metric(0, value, sequence=i, final=False) for i, value in enumerate((5, 6))]
    second = [
        metric(0, value, sequence=i, final=False, attempt=2) for i, value in enumerate((5, 7, 8))
    ]
    await manager.append(*first, *second)
    advice = await manager.received("stop_advice")

    assert advice.trial_id == trial_of(0)
    assert calls_of(manager) == [
        '["t0000", [5]]',
        '["t0000", [5, 6]]',
        '["t0000", [5, 7, 8]]',
    ]


ADVISOR = """
import json
from nni.runtime.msg_dispatcher_base import MsgDispatcherBase
from nni.runtime.protocol import CommandType, send

class Three(MsgDispatcherBase):
    def __init__(self, word):
        super().__init__()
        self.word, self.jobs = word, 0
    def note(self, *words):
        with open("calls.txt", "a") as calls:
            calls.write(json.dumps(words) + "\\n")
    def handle_initialize(self, data):
        self.handle_update_search_space(data)
        send(CommandType.Initialized, "")
    def handle_update_search_space(self, data):
        self.space = data
    def handle_request_trial_jobs(self, data):
        for _ in range(data):
            self.jobs += 1
            parameters = {"n": self.jobs, "w": self.word}
            job = {"parameter_id": f"job {self.jobs}", "parameters": parameters}
            send(CommandType.NewTrialJob, json.dumps(job))
    def handle_report_metric_data(self, data):
        self.note("metric", data["parameter_id"], data["value"], data["type"], data["sequence"])
        if data["type"] == "PERIODICAL":
            send(CommandType.KillTrialJob, data["trial_job_id"])
    def handle_trial_end(self, data):
        self.note("end", data["event"], json.loads(data["hyper_params"])["parameters"])
    def handle_import_data(self, data):
        self.note("import", data)
    def handle_add_customized_trial(self, data):
        self.note("customized", data["parameters"])
"""


@pytest.mark.claim("hpo", 44)
async def test_custom_advisor_serves_as_many_jobs_as_it_sends(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(ADVISOR)
    await manager.create({"a": 1}, advisor=custom("algorithms.Three", folder, word="hello"))

    started = await manager.received("algorithm_started")
    generated = await manager.generate(3)
    await manager.append(metric(0, 0.25, final=False))
    advice = await manager.received("stop_advice")
    await manager.append(metric(0, 0.5), ended(0, trial_pb2.TRIAL_STATE_EARLY_STOPPED))
    await soon(lambda: len(calls_of(manager)) == 3)

    assert started.assesses
    assert [parameters for _, parameters in generated] == [
        {"n": 1, "w": "hello"},
        {"n": 2, "w": "hello"},
        {"n": 3, "w": "hello"},
    ]
    assert advice.trial_id == trial_of(0)
    assert calls_of(manager) == [
        '["metric", "job 1", 0.25, "PERIODICAL", 0]',
        '["metric", "job 1", 0.5, "FINAL", 0]',
        '["end", "EARLY_STOPPED", {"n": 1, "w": "hello"}]',
    ]


@pytest.mark.claim("hpo", 50)
@pytest.mark.claim("platform", 23)
async def test_constructor_that_refuses_its_arguments_ends_the_experiment(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(RECORDER)
    await manager.create({}, tuner=custom("algorithms.Recorder", folder, unknown=1))

    gave_up = await manager.received("algorithm_gave_up")
    failed = await manager.received("algorithm_failed")

    assert "unknown" in gave_up.reason
    assert "TypeError" in failed.traceback
    assert "unexpected keyword argument 'unknown'" in manager.dispatcher_log()


@pytest.mark.parametrize("call", ["receive_trial_result", "trial_end", "import_data"])
async def test_exception_in_a_callback_costs_that_call_only(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code, call: str
) -> None:
    folder = code(
        SIMPLE
        + f"""
class Failing(Base):
    def {call}(self, *args, **kwargs):
        raise RuntimeError("in {call}")
"""
    )
    await manager.create({}, tuner=custom("algorithms.Failing", folder))
    await manager.generate(1)

    imported = event_pb2.DataImported(data=to_value([{"parameter": {}, "value": 1}]))
    await manager.append(event_pb2.Event(data_imported=imported))
    await manager.finish(0, 1.0)
    failed = await manager.received("algorithm_failed")

    assert failed.call == call
    assert failed.skipped
    assert f"RuntimeError: in {call}" in failed.traceback
    assert await manager.generate(1)


GENERATE_FAILURES = {
    "raises": "raise RuntimeError('cannot')",
    "dies": "os._exit(9)",
    "returns no JSON": "return {'value': object()}",
    "nests too deeply": "return __import__('json').loads('[' * 70 + ']' * 70)",
}


@pytest.mark.parametrize("body", GENERATE_FAILURES.values(), ids=GENERATE_FAILURES.keys())
async def test_algorithm_that_fails_thrice_on_one_request_is_given_up(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code, body: str
) -> None:
    folder = code(
        SIMPLE
        + f"""
class Failing(Base):
    def generate_parameters(self, parameter_id, **kwargs):
        with open("calls.txt", "a") as calls:
            calls.write(f"{{parameter_id}}\\n")
        if parameter_id == 2:
            {body}
        return {{"value": parameter_id}}
"""
    )
    await manager.create({}, tuner=custom("algorithms.Failing", folder))
    await manager.generate(1)
    await manager.generate(1)

    await manager.ask(1)
    gave_up = await manager.received("algorithm_gave_up")

    assert "3 times" in gave_up.reason
    assert (
        3 <= calls_of(manager).count("2") <= 4
    )  # the first death may be blamed on an earlier event
    assert manager.all("algorithm_diverged") == []


@pytest.mark.slow
async def test_algorithm_that_hangs_thrice_is_given_up(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    await dispatcher.restart(answer_timeout_s=4.0)  # a cold interpreter may need much of it
    folder = code(
        SIMPLE
        + """
class Hanging(Base):
    def generate_parameters(self, parameter_id, **kwargs):
        time.sleep(1000)
"""
    )
    await manager.create({}, tuner=custom("algorithms.Hanging", folder))

    await manager.ask(1)
    gave_up = await manager.received("algorithm_gave_up")

    assert "gave no answer for 4 s" in gave_up.reason


async def test_algorithm_that_fails_once_goes_on(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(
        SIMPLE
        + """
class Flaky(Base):
    def generate_parameters(self, parameter_id, **kwargs):
        if parameter_id == 1 and not os.path.exists("failed"):
            open("failed", "w").close()
            raise RuntimeError("the first time")
        return {"value": parameter_id}
"""
    )
    await manager.create({}, tuner=custom("algorithms.Flaky", folder))

    generated = [await manager.generate(1), await manager.generate(1), await manager.generate(1)]

    assert [parameters["value"] for ((_, parameters),) in generated] == [0, 1, 2]
    assert not (await manager.received("algorithm_failed")).skipped
    assert manager.all("algorithm_gave_up") == []


async def test_the_log_wins_over_an_algorithm_that_does_not_repeat_itself(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(
        SIMPLE
        + """
class Unrepeatable(Base):
    def generate_parameters(self, parameter_id, **kwargs):
        return {"value": time.time_ns()}
    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        with open("calls.txt", "a") as calls:
            calls.write(f"{parameter_id} {parameters['value']}\\n")
"""
    )
    await manager.create({}, tuner=custom("algorithms.Unrepeatable", folder))
    ((_, parameters),) = await manager.generate(1)

    await dispatcher.restart()
    diverged = await manager.received("algorithm_diverged")
    await manager.finish(0, 1.0)
    await soon(lambda: calls_of(manager))

    assert diverged.parameter_id == 0
    assert from_value(diverged.recorded) == parameters
    assert calls_of(manager) == [f"0 {parameters['value']}"]


async def test_result_of_a_trial_that_the_user_added_stays_from_the_tuner(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(RECORDER)
    await manager.create({}, tuner=custom("algorithms.Recorder", folder))
    added = scheduled(
        trial_of(5), 5, to_value({"value": True}), trial_pb2.PARAMETER_SOURCE_CUSTOMIZED
    )

    await manager.append(added, metric(5, 1.0), ended(5))
    await manager.generate(1)

    assert not [call for call in calls_of(manager) if "receive" in call or "trial_end" in call]


@pytest.mark.claim("platform", 22)
async def test_intermediate_results_of_an_early_stopped_trial_are_no_result(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(RECORDER)
    await manager.create({}, tuner=custom("algorithms.Recorder", folder))
    await manager.generate(1)

    await manager.append(
        metric(0, 0.75, final=False), ended(0, trial_pb2.TRIAL_STATE_EARLY_STOPPED)
    )
    await manager.generate(1)

    assert '["trial_end", 0, false]' in calls_of(manager)
    assert not [call for call in calls_of(manager) if "receive_trial_result" in call]


@pytest.mark.claim("platform", 7)
@pytest.mark.claim("platform", 38)
async def test_host_sees_the_gpus_of_the_configuration(
    dispatcher: Dispatcher, manager: ScriptedManager, code: Code
) -> None:
    folder = code(
        SIMPLE
        + """
class Environment(Base):
    def generate_parameters(self, parameter_id, **kwargs):
        names = ("CUDA_VISIBLE_DEVICES", "NNI_LOG_DIRECTORY", "PYTHONHASHSEED", "NNI_TOKEN")
        return {"cwd": os.getcwd(), **{name: os.environ.get(name) for name in names}}
"""
    )
    await manager.create(
        {}, tuner=custom("algorithms.Environment", folder), tuner_gpu_indices=[0, 2]
    )

    ((_, seen),) = await manager.generate(1)

    assert seen == {
        "cwd": str(manager.log_directory),
        "CUDA_VISIBLE_DEVICES": "0,2",
        "NNI_LOG_DIRECTORY": str(manager.log_directory),
        "PYTHONHASHSEED": "0",
        "NNI_TOKEN": None,
    }
