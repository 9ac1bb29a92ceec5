import pytest

from svc_manager.agents.versions import fit


@pytest.mark.claim("platform", 80)
@pytest.mark.parametrize(
    ("one", "other", "fitting"),
    [
        ("3.0.1", "3.0.2", True),
        ("3.0", "3.0.2", True),
        ("4.0.0.dev0", "4.0.1", True),
        ("3.0.1", "3.1.0", False),
        ("3.0.1", "2.0.1", False),
        ("3.1", "3.10", False),
        ("unknown", "3.0.1", True),
        ("", "3.0.1", True),
        ("3", "4", True),
    ],
)
def test_only_the_first_two_components_tell(one: str, other: str, *, fitting: bool) -> None:
    assert fit(one, other) is fitting
    assert fit(other, one) is fitting
