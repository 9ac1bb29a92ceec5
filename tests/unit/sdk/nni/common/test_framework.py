"""The framework decides what the shortcuts of `nni.nas` export."""

from collections.abc import Iterator

import pytest

import nni.nas.nn
from nni.common import framework
from nni.nas.nn.pytorch import LayerChoice


@pytest.fixture(autouse=True)
def _undecided() -> Iterator[None]:
    framework._chosen.clear()
    yield
    framework._chosen.clear()


def test_pytorch_is_the_default() -> None:
    assert framework.get_default_framework() == "pytorch"
    assert nni.nas.nn.LayerChoice is LayerChoice


def test_environment_decides_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_FRAMEWORK", "None")

    assert framework.get_default_framework() == "none"


def test_call_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_FRAMEWORK", "none")

    framework.set_default_framework("pytorch")

    assert framework.get_default_framework() == "pytorch"


def test_unknown_framework_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="one of pytorch, tensorflow, mxnet, none, got 'caffe'"):
        framework.set_default_framework("caffe")

    monkeypatch.setenv("NNI_FRAMEWORK", "caffe")
    with pytest.raises(ValueError, match="NNI_FRAMEWORK must be one of"):
        framework.get_default_framework()


@pytest.mark.parametrize("name", ["tensorflow", "mxnet"])
def test_unsupported_framework_raises_import_error_at_use(name: str) -> None:
    framework.set_default_framework(name)

    with pytest.raises(ImportError, match=rf"'LayerChoice' for {name}.*supports pytorch only"):
        _ = nni.nas.nn.LayerChoice


def test_package_of_a_framework_can_be_imported_whatever_is_selected() -> None:
    framework.set_default_framework("tensorflow")

    from nni.nas.nn import pytorch

    assert pytorch.LayerChoice is LayerChoice


def test_without_a_framework_shortcuts_export_nothing() -> None:
    framework.set_default_framework("none")

    with pytest.raises(AttributeError, match="switches shortcuts off"):
        _ = nni.nas.nn.LayerChoice


def test_name_that_the_framework_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'nni.nas.nn' has no attribute 'Absent'"):
        _ = nni.nas.nn.Absent


def test_named_modules_are_imported() -> None:
    get = framework.shortcut("nni.nas.utils", ["markers"])

    assert get("markers").__name__ == "nni.nas.utils.markers"  # type: ignore[attr-defined]
