from __future__ import annotations

import json

import pytest

from nni.cli.storage import sized, write_usage
from nni.experiment.errors import RefusedError
from nni_proto.bytes.v1 import byte_service_pb2


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (1500, "1.5 kB"), (3 * 10**12, "3.0 TB")]
)
def test_sizes_are_readable(size: int, text: str) -> None:
    assert sized(size) == text


@pytest.fixture
def usage() -> byte_service_pb2.GetUsageResponse:
    found = byte_service_pb2.GetUsageResponse(used_bytes=1500, blob_count=2)
    found.experiments.add(experiment_id="abcd1234", used_bytes=1500, blob_count=2)
    return found


def test_usage_is_a_line_of_totals_and_a_table(
    usage: byte_service_pb2.GetUsageResponse, capsys: pytest.CaptureFixture[str]
) -> None:
    write_usage(usage, output="table")

    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("1.5 kB in 2 blobs")
    assert last.split() == ["abcd1234", "2", "1.5", "kB"]


def test_usage_as_json_has_the_totals(
    usage: byte_service_pb2.GetUsageResponse, capsys: pytest.CaptureFixture[str]
) -> None:
    write_usage(usage, output="json")

    assert json.loads(capsys.readouterr().out)["usedBytes"] == 1500


def test_usage_as_csv_has_a_line_for_each_experiment(
    usage: byte_service_pb2.GetUsageResponse, capsys: pytest.CaptureFixture[str]
) -> None:
    write_usage(usage, output="csv")

    assert capsys.readouterr().out == "id,usedBytes,blobCount\nabcd1234,1500,2\n"


def test_usage_has_one_form(usage: byte_service_pb2.GetUsageResponse) -> None:
    with pytest.raises(RefusedError, match="exclude each other"):
        write_usage(usage, output="csv", as_json=True)
