"""Calls are forwarded to the chosen tuner, and its return values come back."""

import pytest

from nni.hpo.base import Tuner
from nni.hpo.json_value import JsonValue
from nni.hpo.tuners._delegating import DelegatingTuner


class RecordingTuner(Tuner):
    """Records its calls, in order."""

    def __init__(self, *, learns: bool = False) -> None:
        self.calls: list[JsonValue] = []
        self._learns = learns

    @property
    def learns_durations(self) -> bool:
        return self._learns

    def update_search_space(self, search_space: JsonValue) -> None:
        self.calls.append(["space", search_space])

    def prepare_parameters(self) -> None:
        self.calls.append(["prepare"])

    def generate_parameters(self, parameter_id: int, **kwargs: object) -> JsonValue:
        self.calls.append(["generate", parameter_id, kwargs])
        return {"x": parameter_id}

    def receive_trial_result(
        self, parameter_id: int, parameters: JsonValue, value: JsonValue, **kwargs: object
    ) -> None:
        self.calls.append(["result", parameter_id, parameters, value, kwargs])

    def trial_end(self, parameter_id: int, success: bool, **kwargs: object) -> None:
        self.calls.append(["end", parameter_id, success, kwargs])

    def import_data(self, data: list[dict[str, JsonValue]]) -> None:
        self.calls.append(["import", data])

    def import_curves(self, curves: list[dict[str, JsonValue]]) -> None:
        self.calls.append(["curves", curves])

    def import_durations(self, durations: list[dict[str, JsonValue]]) -> None:
        self.calls.append(["durations", durations])

    def expected_results(self, configurations: list[JsonValue]) -> list[float] | None:
        return [float(configuration["x"]) for configuration in configurations]

    def state(self) -> dict[str, JsonValue]:
        return {"calls": list(self.calls)}

    def load_state(self, state: dict[str, JsonValue]) -> None:
        self.calls = [*state["calls"], ["loaded"]]


class Delegate(DelegatingTuner):
    """Chooses the only tuner there is."""

    def __init__(self, search: RecordingTuner) -> None:
        self._search = search


def test_calls_arrive_with_all_their_arguments() -> None:
    recorder = RecordingTuner()
    front = Delegate(recorder)

    front.update_search_space({"x": "space"})
    front.prepare_parameters()
    front.receive_trial_result(3, {"x": 3}, 0.5, trial_job_id="a")
    front.trial_end(3, True, trial_job_id="a")
    front.import_data([{"parameter": {"x": 1}, "value": 2}])
    front.import_curves([{"parameter": {"x": 1}, "value": None, "intermediate": [2]}])

    assert recorder.calls == [
        ["space", {"x": "space"}],
        ["prepare"],
        ["result", 3, {"x": 3}, 0.5, {"trial_job_id": "a"}],
        ["end", 3, True, {"trial_job_id": "a"}],
        ["import", [{"parameter": {"x": 1}, "value": 2}]],
        ["curves", [{"parameter": {"x": 1}, "value": None, "intermediate": [2]}]],
    ]


def test_answer_comes_back() -> None:
    recorder = RecordingTuner()

    configuration = Delegate(recorder).generate_parameters(7, multi_phase=True)

    assert configuration == {"x": 7}
    assert recorder.calls == [["generate", 7, {"multi_phase": True}]]


def test_state_is_that_of_the_chosen_tuner() -> None:
    recorder = RecordingTuner()
    first, second = Delegate(recorder), Delegate(other := RecordingTuner())
    first.prepare_parameters()

    second.load_state(first.state())

    assert first.state() == {"calls": [["prepare"]]}
    assert other.calls == [["prepare"], ["loaded"]]


def test_run_times_go_to_the_chosen_tuner() -> None:
    recorder = RecordingTuner()

    Delegate(recorder).import_durations([{"parameter": {"x": 1}, "seconds": 2.0}])

    assert recorder.calls == [["durations", [{"parameter": {"x": 1}, "seconds": 2.0}]]]


@pytest.mark.parametrize("learns", [True, False])
def test_expected_results_and_the_need_of_run_times_are_those_of_the_chosen_tuner(
    learns: bool,
) -> None:
    front = Delegate(RecordingTuner(learns=learns))

    assert front.expected_results([{"x": 1}, {"x": 2}]) == [1.0, 2.0]
    assert front.learns_durations is learns
