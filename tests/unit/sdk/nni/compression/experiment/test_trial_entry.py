from collections.abc import Iterator
from pathlib import Path

import pytest

from nni.compression.experiment.trial_entry import load_module, main, run_trial
from nni.compression.job.field_checks import JobError
from nni.trial.api import use_channel
from tests.support.trial_channels import InMemoryTrialChannel
from tests.unit.sdk.nni.compression.experiment.compressed_module import Plain

CHOSEN = {"algorithm_name": {"_name": "level", "config_list::Linear::0::sparsity": 0.25}}
CODE = """
from torch import nn
from nni.compression.experiment import AbstractAutoCompressionModule

class Module(AbstractAutoCompressionModule):
    @classmethod
    def model(cls):
        return nn.Sequential(nn.Linear(4, 4))

    @classmethod
    def evaluator(cls):
        return lambda model: float((model[0].weight == 0).sum())

class Other:
    pass
"""


@pytest.fixture
def channel() -> Iterator[InMemoryTrialChannel]:
    made = InMemoryTrialChannel(CHOSEN)
    use_channel(made)
    yield made
    use_channel(None)


@pytest.mark.claim("compression", 88)
def test_a_trial_reports_one_final_result(channel: InMemoryTrialChannel) -> None:
    run_trial(Plain)

    assert channel.metrics == [("FINAL", 8.0)]


def test_the_class_is_loaded_from_the_code_of_the_trial(
    channel: InMemoryTrialChannel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loaded_by_main").mkdir()
    (tmp_path / "loaded_by_main" / "code.py").write_text(CODE, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    main(["--module_file_name", "loaded_by_main/code.py", "--module_class_name", "Module"])

    assert channel.metrics == [("FINAL", 4.0)]


def test_other_classes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "refused_code.py").write_text(CODE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(TypeError, match=r"Other of refused_code\.py must derive from Abstract"):
        load_module("refused_code.py", "Other", tmp_path)
    with pytest.raises(JobError, match="has no function 'Missing'"):
        load_module("refused_code.py", "Missing", tmp_path)
    with pytest.raises(JobError, match="must name a module in the code directory"):
        load_module("json/decoder.py", "JSONDecoder", tmp_path)
