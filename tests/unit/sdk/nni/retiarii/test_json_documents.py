"""Functions that write and read JSON."""

import io

import pytest

from nni.retiarii import json_dump, json_dumps, json_load, json_loads

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_document_is_written_and_read_as_text() -> None:
    assert json_loads(json_dumps({"layer": [1, "a"]})) == {"layer": [1, "a"]}


def test_document_is_written_and_read_as_a_file() -> None:
    file = io.StringIO()

    json_dump({"layer": 1}, file)
    file.seek(0)

    assert json_load(file) == {"layer": 1}
