"""An experiment file of NNI 1.x, run as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape
from tests.support.nnictl import Nnictl
from tests.support.schema_v1_samples import sample


@pytest.mark.claim("platform", 12)
def test_sample_of_schema_v1_runs_to_its_end(local_shape: LocalShape, tmp_path: Path) -> None:
    experiment_id = Nnictl(local_shape).create(sample("local_annotation", tmp_path))

    local_shape.wait_for_state(experiment_id, "DONE")

    trials = local_shape.trials(experiment_id)
    assert [trial["status"] for trial in trials] == ["SUCCEEDED"] * 10
