"""Every server of `TuningService` that we know, in any language, keeps its contract."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from nni.testing.tuning_server import TuningServerConformance
from nni.testing.tuning_server.__main__ import main
from tests.support.node_tuner import node_tuner
from tests.support.ports import free_port
from tests.support.tuning_server import TuningServer, tuning_server_in_thread


class Served(TuningServerConformance):
    server: ClassVar[str] = ""

    def address(self) -> str:
        return self.server


@pytest.fixture(scope="class")
def python_server(request: pytest.FixtureRequest) -> Iterator[str]:
    with tuning_server_in_thread(TuningServer()) as address:
        if request.cls is not None:
            request.cls.server = address
        yield address


@pytest.fixture(scope="class")
def node_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The example that is written for Node; skips where there is none."""
    with node_tuner(tmp_path_factory.mktemp("node")) as address:
        request.cls.server = address
        yield address


@pytest.mark.usefixtures("python_server")
class TestPythonServer(Served):
    pass


@pytest.mark.usefixtures("node_server")
@pytest.mark.timeout(120)  # the first test waits for npm
class TestNodeServer(Served):
    pass


def test_command_runs_the_suite_and_tells_each_result(
    python_server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([python_server])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0, "\n".join(lines)
    assert lines[-1] == f"{len(lines) - 1} passed, 0 failed"
    assert "ok      test_parameters_lie_in_the_space" in lines


def test_command_tells_what_fails(python_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([python_server, "--class-args", '{"bad": 1}'])

    assert code == 1
    assert "FAILED  test_parameters_lie_in_the_space: Every suggestion" in capsys.readouterr().out


def test_command_reports_a_missing_server(capsys: pytest.CaptureFixture[str]) -> None:
    address = f"127.0.0.1:{free_port()}"

    assert main([address], connect_timeout_s=0.2) == 2
    assert f"no server can be reached at {address}" in capsys.readouterr().err


def test_suite_is_found_where_the_guide_says() -> None:
    example = Path(__file__).parents[3] / "examples" / "external-tuner" / "README.md"

    assert "python -m nni.testing.tuning_server" in example.read_text("utf-8")
