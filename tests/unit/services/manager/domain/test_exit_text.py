import pytest

from svc_manager.domain.exit_text import CommandEnd, command_end_text, read_command_end


@pytest.mark.parametrize(
    "end",
    [
        CommandEnd(1, 0, ""),
        CommandEnd(2, 0, "Traceback: 3\nValueError: signal 9"),
        CommandEnd(None, 9, ""),
        CommandEnd(None, 11, "exit code 1"),
    ],
)
def test_an_end_is_read_from_its_words_as_it_was(end: CommandEnd) -> None:
    assert read_command_end(command_end_text(end)) == end


def test_other_reasons_tell_of_no_end() -> None:
    assert read_command_end("lost 3 times, last: its agent was stopped") is None
