from __future__ import annotations

import math

import pytest

from nni.plot.progress import edf, history, intermediate_results, scale_of, timeline, tuners
from nni.plot.trials import PlottedTrial


def trial(number: int, value: float, **fields: object) -> PlottedTrial:
    return PlottedTrial(number, {"x": number}, {"default": value}, **fields)  # type: ignore[arg-type] # any field


@pytest.mark.parametrize(
    ("mode", "best"), [("minimize", [2.0, 1.0, 1.0]), ("maximize", [2.0, 2.0, 3.0])]
)
def test_history_has_results_and_the_best_so_far(mode: str, best: list[float]) -> None:
    trials = [trial(0, 2.0), trial(1, 1.0), trial(2, 3.0), PlottedTrial(3, {"x": 3})]

    figure = history(trials, optimize_mode=mode, backend="matplotlib")  # type: ignore[arg-type] # its words

    (axes,) = figure.axes
    assert axes.collections[0].get_offsets().tolist() == [[0, 2], [1, 1], [2, 3]]
    assert axes.lines[0].get_ydata().tolist() == best


def test_history_without_results_says_so() -> None:
    with pytest.raises(ValueError, match="metric must be one that trials have reported"):
        history([PlottedTrial(0, {})])


def test_wrong_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="optimize_mode must be minimize or maximize"):
        history([trial(0, 1.0)], optimize_mode="best")  # type: ignore[arg-type] # wrong on purpose


def test_curves_of_a_state_are_one_line_with_gaps() -> None:
    trials = [
        trial(0, 1.0, intermediates=(3.0, 2.0)),
        trial(1, 1.0, intermediates=(4.0,)),
        PlottedTrial(2, {}, {}, ("text", 5.0), "EARLY_STOPPED"),
        trial(3, 1.0),
    ]

    figure = intermediate_results(trials, backend="matplotlib")

    stopped, succeeded = figure.axes[0].lines
    assert (stopped.get_label(), succeeded.get_label()) == ("early stopped", "succeeded")
    values = succeeded.get_ydata().tolist()
    assert values[:2] == [3.0, 2.0]
    assert math.isnan(values[2])
    assert values[3] == 4.0
    assert stopped.get_ydata().tolist()[1] == 5.0


def test_curves_of_another_metric_are_refused() -> None:
    with pytest.raises(ValueError, match="metric must have intermediate results, got 'size'"):
        intermediate_results([trial(0, 1.0, intermediates=(1.0,))], metric="size")


def test_distribution_has_a_line_for_each_search() -> None:
    searches = {"first": [trial(0, 2.0), trial(1, 1.0)], "second": [trial(0, 5.0)]}

    figure = edf(searches, backend="matplotlib")

    first, second = figure.axes[0].lines
    assert first.get_xydata().tolist() == [[1.0, 0.5], [2.0, 1.0]]
    assert second.get_xydata().tolist() == [[5.0, 1.0]]


def test_trials_at_the_same_time_have_rows_of_their_own() -> None:
    trials = [
        trial(0, 1.0, started_s=0.0, ended_s=10.0, machine="a"),
        trial(1, 1.0, started_s=5.0, ended_s=8.0, machine="a"),
        trial(2, 1.0, started_s=8.0, ended_s=9.0, machine="a"),
        trial(3, 1.0, started_s=0.0, ended_s=1.0, machine="b"),
        trial(4, 1.0, started_s=0.0),
    ]

    figure = timeline(trials, backend="matplotlib")

    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["a 1", "a 2", "b 1"]
    assert len(figure.axes[0].patches) == 4


def test_rows_of_the_timeline_are_ordered_by_number() -> None:
    machines = ["node-10", "node-2", "node-1"]
    trials = [
        trial(number, 1.0, started_s=0.0, ended_s=1.0, machine=machine)
        for number, machine in enumerate(machines)
    ]

    figure = timeline(trials, backend="matplotlib")

    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["node-1 1", "node-2 1", "node-10 1"]


def test_timeline_without_times_says_what_has_them() -> None:
    with pytest.raises(ValueError, match="as an experiment has"):
        timeline([trial(0, 1.0)])


@pytest.mark.parametrize(
    ("values", "scale"),
    [([1e-5, 1.0], "log"), ([1.0, 2.0], "linear"), ([-1.0, 1e9], "linear"), ([], "linear")],
)
def test_positive_values_over_decades_are_on_a_logarithmic_axis(
    values: list[float], scale: str
) -> None:
    assert scale_of(values) == scale


def test_best_result_of_each_tuner_over_its_own_trials() -> None:
    trials = [
        trial(0, 3.0, tuner="TPE"),
        trial(1, 2.0, tuner="Random"),
        trial(2, 1.0, tuner="TPE"),
        trial(3, 0.0),
    ]

    figure = tuners(trials, backend="matplotlib")

    first, second = figure.axes[0].lines
    assert (first.get_label(), second.get_label()) == ("TPE", "Random")
    assert first.get_ydata().tolist() == [3.0, 1.0]
    assert second.get_xdata().tolist() == [1]


def test_trials_that_name_no_tuner_are_refused() -> None:
    with pytest.raises(ValueError, match="trials that name their tuner"):
        tuners([trial(0, 1.0)], backend="matplotlib")
