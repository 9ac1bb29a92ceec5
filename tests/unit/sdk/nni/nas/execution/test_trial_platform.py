import pytest

from nni.nas.execution.trial_platform import PlatformEvent, TrialPlatform
from tests.support.in_memory_trials import InMemoryTrials


@pytest.fixture
def trials() -> TrialPlatform:
    return InMemoryTrials()


def test_events_are_yielded_once_and_in_order(trials: TrialPlatform) -> None:
    trials.open(None)
    trials.add("a", {"x": 1})
    first = list(trials.events(follow=False))
    trials.add("b", {"x": 2})
    second: list[PlatformEvent] = list(trials.events(follow=False))

    assert [getattr(event, "key", "") for event in [*first, *second]] == ["a", "a", "b", "b"]
    assert trials.parameters("a") == {"x": 1}


def test_close_ends_the_events(trials: TrialPlatform) -> None:
    trials.close()
    trials.close()

    assert list(trials.events(follow=True)) == []
