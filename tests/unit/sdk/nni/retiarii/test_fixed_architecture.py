"""Context in which networks are built as an exported architecture."""

import json
from pathlib import Path

import pytest

from nni.nas.space import current_model
from nni.retiarii import fixed_arch

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("kind", [str, Path])
def test_architecture_is_read_from_a_file(kind: type, tmp_path: Path) -> None:
    file = tmp_path / "architecture.json"
    file.write_text('{"layer": "1"}')

    with fixed_arch(kind(file)):
        assert current_model() == {"layer": "1"}


def test_file_of_others_constructs_no_object(tmp_path: Path) -> None:
    file = tmp_path / "architecture.json"
    value = {"__symbol__": "path:builtins.print", "__kwargs__": {}}
    file.write_text(json.dumps({"layer": value}))

    with fixed_arch(file):
        assert current_model() == {"layer": value}


def test_architecture_is_a_dict() -> None:
    with fixed_arch({"layer": "1"}, verbose=False):
        assert current_model() == {"layer": "1"}


def test_file_that_holds_no_object_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "architecture.json"
    file.write_text("[1]")

    with pytest.raises(TypeError, match="fixed_arch must be a JSON object"):
        fixed_arch(file)
