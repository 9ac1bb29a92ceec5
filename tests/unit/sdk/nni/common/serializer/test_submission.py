from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import nni
from nni.common.serializer import PayloadTooLarge
from nni.common.serializer.submission import dump_submission, submission_limit_bytes


class Evaluator:
    def __init__(self, content: object) -> None:
        self.content = content


def test_the_limit_is_64_kb_or_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = nni.trace(Evaluator)(bytearray(70_000))

    with pytest.raises(PayloadTooLarge, match=r"64 KB") as raised:
        dump_submission(evaluator)
    assert isinstance(raised.value.__cause__, PayloadTooLarge)
    assert raised.value.path == "content"
    assert "PICKLE_SIZE_LIMIT" in str(raised.value)
    monkeypatch.setenv("PICKLE_SIZE_LIMIT", "100000")
    assert len(nni.load(dump_submission(evaluator)).content) == 70_000


def test_a_limit_may_be_given() -> None:
    assert dump_submission(bytearray(70_000), limit_bytes=0)


def test_a_limit_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a number of bytes, got '64KB'"):
        submission_limit_bytes({"PICKLE_SIZE_LIMIT": "64KB"})


def test_data_travels_as_calls_only() -> None:
    rows = torch.zeros(2, 1)
    data = nni.trace(TensorDataset)(rows)

    for untraced in (TensorDataset(rows), DataLoader(data)):
        with pytest.raises(ValueError, match=r"content is an untraced .*never as pickles"):
            dump_submission(nni.trace(Evaluator)(untraced))
    made: Any = nni.load(dump_submission(nni.trace(Evaluator)(nni.trace(DataLoader)(data))))
    assert len(made.content.dataset) == 2
