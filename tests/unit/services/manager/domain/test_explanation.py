import pytest

from svc_manager.domain.explanation import ago, count


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (-5, "0 s"),
        (999, "0 s"),
        (4_000, "4 s"),
        (200_000, "3 min 20 s"),
        (7_500_000, "2 h 5 min"),
    ],
)
def test_durations_are_written_with_their_two_largest_units(duration_ms: int, text: str) -> None:
    assert ago(duration_ms) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 trials"), (1, "1 trial"), (2, "2 trials")])
def test_a_count_agrees_with_its_noun(number: int, text: str) -> None:
    assert count(number, "trial") == text
