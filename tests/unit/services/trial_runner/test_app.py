"""Parts of the agent that the settings choose; the whole is started by the integration tests."""

from pathlib import Path

import pytest

from svc_trial_runner.app import _gpu_source
from svc_trial_runner.settings import read_settings


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NNI_NATS_URL", "nats://127.0.0.1:4222")
    monkeypatch.setenv("NNI_TOKEN", "secret")
    monkeypatch.setenv("NNI_HOME", str(tmp_path))


async def test_pretended_gpus_have_the_first_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNI_RUNNER_FAKE_GPUS", "2")

    devices = await _gpu_source(read_settings([])).devices()

    assert [device.index for device in devices] == [0, 1]
