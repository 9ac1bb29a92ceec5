"""Program of a worker: reports and errors as lines."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker import MARKER, main, parse
from tests.support.worker_shell import digest_of, packed


def report(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    line = capsys.readouterr().out
    assert line.startswith(MARKER)
    found: dict[str, Any] = json.loads(line.removeprefix(MARKER))
    return found


def test_report_is_one_marked_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path), "status"], io.BytesIO()) == 0

    assert report(capsys) == {"agents": []}


def test_error_is_a_report_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--folder", str(tmp_path), "start", "one", "0" * 64]

    assert main(arguments, io.BytesIO(b"{}")) == 1

    error = report(capsys)["error"]
    assert error["code"] == "bundle_missing"
    assert not error["permanent"]


def test_folder_that_cannot_be_written_is_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", "/proc/self/nni", "probe"], io.BytesIO()) == 1

    assert "/proc/self/nni" in report(capsys)["error"]["message"]


def test_bundle_is_read_from_stdin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = packed({"run.py": b"pass"})

    assert main(["--folder", str(tmp_path), "unpack", digest_of(content)], io.BytesIO(content)) == 0

    assert report(capsys) == {"unpacked": True}


def test_settings_are_read_from_stdin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path), "settings", "one", "ab"], io.BytesIO(b"{}")) == 0

    assert Path(report(capsys)["folder"], "settings.json").read_bytes() == b"{}"


def test_file_that_cannot_be_replaced_is_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--folder", str(tmp_path), "settings", "one", "ab"]
    assert main(arguments, io.BytesIO(b"{}")) == 0
    file = Path(report(capsys)["folder"], "settings.json")
    file.unlink()
    file.mkdir()

    assert main(arguments, io.BytesIO(b"{}")) == 1

    assert str(file) in report(capsys)["error"]["message"]


@pytest.mark.parametrize("command", ["stop", "remove"])
def test_agents_that_are_not_there_are_ended_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert main(["--folder", str(tmp_path), command, "one", "two"], io.BytesIO()) == 0

    assert [agent["name"] for agent in report(capsys)["agents"]] == ["one", "two"]


def test_run_writes_its_error_for_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path), "run", "one", "0" * 64], io.BytesIO()) == 1

    assert capsys.readouterr().err.startswith("ERROR: ")


def test_end_of_a_log_has_16_kibibytes_unless_another_length_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "agents" / "one" / "agent.log"
    log.parent.mkdir(parents=True)
    log.write_text("a" * 20_000 + "b" * 16 * 1024)
    folder = ["--folder", str(tmp_path), "log", "one"]

    assert main(folder, io.BytesIO()) == 0
    usual = report(capsys)["log"]
    assert main([*folder, "--bytes", "5"], io.BytesIO()) == 0

    assert usual == "b" * 16 * 1024
    assert report(capsys)["log"] == "bbbbb"


def test_longest_end_of_a_log_has_256_kibibytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "agents" / "one" / "agent.log"
    log.parent.mkdir(parents=True)
    log.write_text("a" + "b" * 256 * 1024)

    main(["--folder", str(tmp_path), "log", "one", "--bytes", "1000000"], io.BytesIO())

    assert report(capsys)["log"] == "b" * 256 * 1024


def test_folder_is_that_of_the_home_unless_another_one_is_given() -> None:
    assert parse(["probe"]).folder == "~/.nni"
    assert parse(["--folder", "/nni", "probe"]).folder == "/nni"


@pytest.mark.parametrize("command", ["stop", "remove", "clean"])
def test_agents_have_ten_seconds_to_end(command: str) -> None:
    assert parse([command, "one"]).grace == 10.0
    assert parse([command, "--grace", "0.5", "one"]).grace == 0.5


@pytest.mark.parametrize("arguments", [[], ["odd"], ["start", "one"], ["stop"]])
def test_wrong_arguments_end_the_program(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(arguments)

    assert caught.value.code == 2


def test_agents_of_a_prefix_are_listed_and_all_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a-1", "b-1"):
        main(["--folder", str(tmp_path), "settings", name, "ab"], io.BytesIO(b"{}"))
    capsys.readouterr()

    main(["--folder", str(tmp_path), "status", "a-"], io.BytesIO())
    some = [agent["name"] for agent in report(capsys)["agents"]]
    main(["--folder", str(tmp_path), "status"], io.BytesIO())

    assert some == ["a-1"]
    assert [agent["name"] for agent in report(capsys)["agents"]] == ["a-1", "b-1"]


def test_bundles_are_cleaned_on_demand_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = packed({"run.py": b"pass"})
    main(["--folder", str(tmp_path / "nni"), "unpack", digest_of(content)], io.BytesIO(content))

    main(["--folder", str(tmp_path / "nni"), "clean", "a-"], io.BytesIO())
    kept = (tmp_path / "nni" / "bundles" / digest_of(content)).is_dir()
    main(["--folder", str(tmp_path / "nni"), "clean", "a-", "--bundles"], io.BytesIO())

    assert kept
    assert not (tmp_path / "nni").exists()
    assert capsys.readouterr().err == ""


def test_error_has_its_remedy_and_is_permanent_if_a_person_must_act(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nni").touch()

    main(["--folder", str(tmp_path), "settings", "a b", "ab"], io.BytesIO())
    bad_name = report(capsys)["error"]
    main(["--folder", str(tmp_path / "nni"), "probe"], io.BytesIO())

    assert (bad_name["code"], bad_name["remedy"], bad_name["permanent"]) == ("bad_name", "", True)
    assert report(capsys)["error"]["code"] == "file_error"


def test_log_that_cannot_be_found_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--folder", str(tmp_path), "log", "one"], io.BytesIO()) == 0

    assert report(capsys) == {"log": ""}
