"""Parts of a fork that becomes a service; whole forks are tested with the fork server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from svc_standalone.forked_service import ServiceStart, TitleArea, fail

START = ServiceStart("svc_nas", {"PATH": "/bin"}, "/", [7, 5])


def printed(program: str) -> object:
    """Return the JSON that a program prints."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    return json.loads(done.stdout)


def test_request_is_read_as_it_was_written() -> None:
    assert ServiceStart.decode(START.encode()) == START


def test_title_is_that_of_a_new_interpreter() -> None:
    assert START.title == [sys.executable, "-P", "-m", "svc_nas"]


def test_title_has_room_up_to_the_end_of_its_area() -> None:
    area = TitleArea(0, 8)

    assert area.has_room(["abc", "def"])
    assert not area.has_room(["abc", "defg"])


def test_title_replaces_the_whole_command_line() -> None:
    program = """
        import json
        from svc_standalone.forked_service import TitleArea
        TitleArea.of_this_process().write(["a b", "c"])
        print(json.dumps(open("/proc/self/cmdline").read().rstrip("\\0").split("\\0")))
    """

    assert printed(program) == ["a b", "c"]


def test_another_parent_is_noticed() -> None:
    program = """
        import json, os
        from svc_standalone.forked_service import end_with
        print(json.dumps([end_with(os.getppid()), end_with(os.getpid())]))
    """

    assert printed(program) == [True, False]


@pytest.mark.parametrize("more", [0, 1], ids=["first is received", "first is another"])
def test_descriptors_that_change_places_arrive_and_all_others_are_closed(more: int) -> None:
    program = f"""
        import json, os, sys
        from svc_standalone.forked_service import place_descriptors
        others = [os.dup(0) for _ in range({more})]
        pipes = [os.pipe() for _ in range(3)]
        for number, (_, writer) in enumerate(pipes):
            os.write(writer, str(number).encode())
        received = [reader for reader, _ in pipes]
        os.dup(received[0])
        place_descriptors(os.dup(1), received, [received[1], received[0], 90])
        left = [number for number in range(3, 300) if os.path.exists(f"/proc/self/fd/{{number}}")]
        print(json.dumps({{
            "left": left == sorted((received[0], received[1], 90)),
            "read": [os.read(number, 9).decode() for number in (received[1], received[0], 90)],
            "inheritable": [os.get_inheritable(number) for number in (0, 1, 2, 90)],
            "input": os.read(0, 1).decode(),
        }}))
    """

    found = printed(program)

    assert found == {
        "left": True,
        "read": ["0", "1", "2"],
        "inheritable": [True] * 4,
        "input": "",
    }


def test_fork_that_fails_ends_at_once_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "_exit", sys.exit)

    with pytest.raises(SystemExit) as end:
        fail(ValueError("no room"))

    assert end.value.code == 127
    assert capfd.readouterr() == ("", "service cannot be run: ValueError: no room\n")
