import pytest

from svc_manager.ports import PortTakenError


@pytest.mark.parametrize(
    ("holder", "text"),
    [
        ("program nginx (pid 12)", "port 8080 is in use by program nginx (pid 12)"),
        ("", "port 8080 is in use;"),
    ],
)
def test_the_error_of_a_port_in_use_names_holder_and_remedy(holder: str, text: str) -> None:
    error = PortTakenError(8080, holder)

    assert text in error.message
    assert "--port" in error.message
    assert (error.port, error.holder) == (8080, holder)
