import io
import math

import pytest

from nni.nas.experiment.search_progress import INTERVAL_S, SearchProgress
from nni.nas.space import ModelStatus
from tests.support.architecture_search import frozen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Time that a test moves, in seconds."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_line_has_counts_the_best_model_and_the_time_left(clock: Clock, terminal: Terminal) -> None:
    progress = SearchProgress(terminal, 4, clock_s=clock)
    progress.model_ended(ModelStatus.Trained, 0.5)
    clock.now_s = 60
    progress.model_ended(ModelStatus.Failed, None)

    assert progress.line() == "2/4 models, 1 failed, best 0.5 (model 0), about 1 min 0 s left"


def test_models_that_end_fast_share_a_line(clock: Clock, terminal: Terminal) -> None:
    progress = SearchProgress(terminal, clock_s=clock)
    for metric in (0.5, 0.75, 0.25):
        progress.model_ended(ModelStatus.Trained, metric)
    clock.now_s = INTERVAL_S
    progress.model_ended(ModelStatus.Trained, math.nan)
    progress.model_ended(ModelStatus.Trained, 1)
    progress.close()
    progress.close()

    assert terminal.getvalue().splitlines() == [
        "1 models, 0 failed, best 0.5 (model 0)",
        "4 models, 0 failed, best 0.75 (model 1)",
        "5 models, 0 failed, best 1 (model 4)",
    ]


def test_models_of_a_resumed_search_count_without_a_line(clock: Clock, terminal: Terminal) -> None:
    model = frozen(1)
    model.metrics.final, model.status = 0.5, ModelStatus.Trained
    progress = SearchProgress(terminal, 3, clock_s=clock)
    progress.restore([model])
    progress.close()
    clock.now_s = 10
    progress.model_ended(ModelStatus.Trained, 0.25)

    assert terminal.getvalue() == "2/3 models, 0 failed, best 0.5 (model 0), about 10 s left\n"


def test_nothing_is_written_to_what_is_no_terminal(clock: Clock) -> None:
    stream = io.StringIO()
    progress = SearchProgress(stream, clock_s=clock)

    progress.model_ended(ModelStatus.Trained, 0.5)
    progress.close()

    assert stream.getvalue() == ""
