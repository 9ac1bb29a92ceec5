import pytest

from nni.nas.experiment.exports import check_formatter, formatted
from nni.testing.strategies import Architecture
from tests.support.architecture_search import frozen


def test_models_are_returned_in_each_form() -> None:
    model = frozen(3)

    assert formatted([model], None) == [model]
    assert formatted([model], "dict") == [{"a": 3}]
    assert formatted([model], "instance") == [Architecture(a=3)]


@pytest.mark.claim("nas", 64)
def test_code_needs_the_graph_format() -> None:
    with pytest.raises(ValueError, match="needs models in the graph format, these are RawFormat"):
        formatted([frozen()], "code")


@pytest.mark.claim("nas", 64)
def test_unknown_formatters_are_refused() -> None:
    with pytest.raises(ValueError, match="formatter must be one of None, 'code', 'dict'"):
        check_formatter("xml")
