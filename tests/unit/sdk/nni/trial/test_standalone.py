import re

import pytest

from nni.trial.standalone import StandaloneTrialChannel


@pytest.mark.parametrize("index", [0, 5])
def test_parameters_are_always_empty(index: int) -> None:
    assert StandaloneTrialChannel().parameters(index) == {}


@pytest.mark.parametrize(
    ("kind", "label"), [("PERIODICAL", "Intermediate result"), ("FINAL", "Final result")]
)
def test_metric_is_one_line_of_output(
    kind: str, label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    StandaloneTrialChannel().report(kind, {"default": 0.5})  # type: ignore[arg-type]  # one of two

    line = rf"\[\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\] INFO \(nni\) {label}: {{'default': 0.5}}\n"
    assert re.fullmatch(line, capsys.readouterr().out)
