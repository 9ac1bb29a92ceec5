"""Docstrings are divided into sections and entries."""

from docs.generator.docstrings import entries_of, sections_of

TEXT = """Rounds values.

More: about it.

Args:
    model: an unwrapped model;
        it is changed.
    bits: from 2 to 8.

Source: Someone, A Paper,
    2020, section 3.

Examples:
    >>> 1 + 1
    2
"""


def test_sections_are_found_by_heading() -> None:
    found = sections_of(TEXT)

    assert list(found) == ["", "Args", "Source", "Examples"]
    assert found[""] == "Rounds values.\n\nMore: about it."
    assert " ".join(found["Source"].split()) == "Someone, A Paper, 2020, section 3."
    assert found["Examples"] == ">>> 1 + 1\n2"


def test_entries_have_their_meaning_in_one_line() -> None:
    found = entries_of(sections_of(TEXT)["Args"])

    assert found == {"model": "an unwrapped model; it is changed.", "bits": "from 2 to 8."}


def test_text_without_sections_is_description() -> None:
    assert sections_of("A text.") == {"": "A text."}
    assert entries_of("") == {}
