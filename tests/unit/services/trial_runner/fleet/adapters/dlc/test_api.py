from __future__ import annotations

import pytest

from svc_trial_runner.fleet.adapters.dlc.api import PAGE, DlcApi, DlcRefusalError
from svc_trial_runner.fleet.adapters.dlc.options import DlcOptions
from tests.support.dlc_server import KEY, dlc_server

JOB = {
    "JobType": "TFJob",
    "JobSpecs": [{"Type": "Worker", "Image": "i", "PodCount": 1, "EcsSpec": "e"}],
    "UserCommand": "true",
}


def test_jobs_of_all_pages_are_listed() -> None:
    with dlc_server() as server:
        api = DlcApi(DlcOptions(endpoint=server.address, key_id=KEY.id), KEY.secret)
        for number in range(PAGE + 1):
            api.submit({**JOB, "DisplayName": f"nni-a-{number}"})
        api.submit({**JOB, "DisplayName": "other-nni-a-1"})

        assert len(api.jobs("nni-a-")) == PAGE + 1


def test_job_that_is_gone_may_be_ended() -> None:
    with dlc_server() as server:
        api = DlcApi(DlcOptions(endpoint=server.address, key_id=KEY.id), KEY.secret)

        api.stop("nothing")
        api.delete("nothing")

        assert api.jobs("nothing") == []


def test_wrong_key_is_denied_without_its_secret() -> None:
    with dlc_server() as server:
        api = DlcApi(DlcOptions(endpoint=server.address, key_id=KEY.id), "wrong-secret")

        with pytest.raises(DlcRefusalError, match="does not conform") as caught:
            api.jobs("nni-")

    assert caught.value.denied
    assert "wrong-secret" not in str(caught.value)
