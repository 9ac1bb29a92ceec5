import pytest

from nni.compression.experiment.interface import AbstractAutoCompressionModule
from tests.unit.sdk.nni.compression.experiment.compressed_module import Plain


def test_model_and_evaluator_are_needed() -> None:
    with pytest.raises(TypeError, match=r"abstract methods '?evaluator'?, '?model'?"):
        AbstractAutoCompressionModule()  # type: ignore[abstract]  # what is refused


def test_all_other_code_is_optional() -> None:
    assert Plain.optimizer_factory() is Plain.criterion() is Plain.dummy_input() is None
    assert Plain.sparsifying_trainer("slim") is None
    assert Plain.post_compress_finetuning_trainer("l1") is None
    assert Plain.post_compress_finetuning_epochs("l1") == 0
