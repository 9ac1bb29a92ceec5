from __future__ import annotations

import io

import pytest

from nni.experiment.progress import (
    PlainDisplay,
    Progress,
    ProgressMeter,
    TerminalDisplay,
    duration_words,
    rate_text,
)
from nni_proto.experiment.v1 import experiment_pb2


def experiment(**counts: int) -> experiment_pb2.Experiment:
    message = experiment_pb2.Experiment(id="abcd1234")
    message.state = experiment_pb2.EXPERIMENT_STATE_RUNNING
    message.config.max_trial_number = 100
    for name, count in counts.items():
        message.trial_counts[name] = count
    return message


def test_trials_are_counted_by_what_became_of_them() -> None:
    message = experiment(SUCCEEDED=3, EARLY_STOPPED=1, FAILED=2, USER_CANCELED=1, RUNNING=2)

    progress = ProgressMeter().read(message, 0.0)

    assert (progress.done, progress.failed, progress.running) == (4, 3, 2)
    assert progress.limit == 100


def test_rate_and_time_left_follow_the_last_half_minute() -> None:
    meter = ProgressMeter()
    meter.read(experiment(SUCCEEDED=0), 0.0)
    meter.read(experiment(SUCCEEDED=1), 40.0)

    progress = meter.read(experiment(SUCCEEDED=21), 50.0)

    assert progress.rate_per_s == pytest.approx(21 / 50)
    later = meter.read(experiment(SUCCEEDED=41), 71.0)
    assert later.rate_per_s == pytest.approx(40 / 31)
    assert later.left_s == pytest.approx(59 / (40 / 31))


def test_nothing_is_said_of_rate_before_a_trial_has_ended() -> None:
    meter = ProgressMeter()
    meter.read(experiment(), 0.0)

    progress = meter.read(experiment(RUNNING=1), 10.0)

    assert progress.rate_per_s is None
    assert progress.left_s is None


def test_time_budget_bounds_the_time_left() -> None:
    message = experiment()
    message.config.ClearField("max_trial_number")
    message.config.max_experiment_duration.FromSeconds(60)
    message.execution_time.FromSeconds(50)

    assert ProgressMeter().read(message, 0.0).left_s == 10


def test_line_says_everything_that_is_known() -> None:
    message = experiment(SUCCEEDED=12, RUNNING=2, FAILED=1)
    message.best_value = 0.98765432
    message.best_trial_id = "aB3dE"

    line = ProgressMeter().read(message, 0.0).line()

    assert line == "13/100 trials, 2 running, 1 failed, best 0.987654 (trial aB3dE)"


def test_line_says_what_is_waited_for_when_nothing_moves() -> None:
    message = experiment()
    message.waiting_for = "waiting for the algorithm"

    assert ProgressMeter().read(message, 0.0).line().endswith("waiting for the algorithm")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_durations_are_readable(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


@pytest.mark.parametrize(
    ("rate", "text"),
    [(12.34, "12.3 trials/s"), (0.5, "30.0 trials/min"), (0.001, "3.6 trials/h")],
)
def test_rates_have_a_fitting_unit(rate: float, text: str) -> None:
    assert rate_text(rate) == text


def progress(done: int) -> Progress:
    return ProgressMeter().read(experiment(SUCCEEDED=done), 0.0)


def test_plain_display_writes_rarely_and_ends_with_the_last_word() -> None:
    stream, now = io.StringIO(), [0.0]
    display = PlainDisplay(stream, lambda: now[0])

    display.show(progress(1))
    display.show(progress(2))
    now[0] = 6.0
    display.show(progress(3))
    display.show(progress(4))
    display.close()
    display.close()

    lines = stream.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["1/100", "3/100", "4/100"]


def test_plain_display_does_not_repeat_itself() -> None:
    stream, now = io.StringIO(), [0.0]
    display = PlainDisplay(stream, lambda: now[0])

    for second in range(30):
        now[0] = float(second)
        display.show(progress(1))
    display.close()

    assert len(stream.getvalue().splitlines()) == 1


def test_terminal_display_shows_the_line_and_gives_the_terminal_back() -> None:
    stream = io.StringIO()
    display = TerminalDisplay(stream)

    display.show(progress(7))
    display.note("a line of the log\n")
    display.close()
    display.close()

    assert "7/100 trials" in stream.getvalue()
    assert "a line of the log" in stream.getvalue()
