from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nni.experiment.client import ManagerClient
from nni.experiment.errors import NotFoundError
from nni.experiment.local_shape import running_endpoint
from nni.nas.experiment.model_files import fetch_model
from nni.nas.experiment.remote_exploration import RemoteExploration
from nni_wire.trial_blobs import OUTPUT_ARCHIVE, output_key
from tests.support.compression_log import archive_of
from tests.support.in_memory_manager import InMemoryManager

SEARCH = "abcd1234"


@pytest.fixture
def client(manager: InMemoryManager) -> Iterator[ManagerClient]:
    """Connection to a manager with an exploration of two models."""
    manager.add_experiment(SEARCH).config.nas.strategy = "Random"
    for number, result in enumerate((0.5, 0.9)):
        manager.add_trial(
            SEARCH, f"t{number}", result=result, parameters={"sample": {"width": number}}
        ).attempt = 2
    endpoint = running_endpoint()
    assert endpoint is not None
    with ManagerClient(endpoint) as opened:
        yield opened


def test_files_of_the_best_model_are_copied(
    client: ManagerClient, manager: InMemoryManager, tmp_path: Path
) -> None:
    trial = manager.trials[SEARCH][1]
    trial.directory = str(tmp_path / "trial")
    left = tmp_path / "trial" / "model"
    left.mkdir(parents=True)
    for name in ("sample.json", "weights.safetensors", "unrelated.bin"):
        (left / name).write_text(name)

    files = RemoteExploration(SEARCH, client).fetch(tmp_path / "best")

    assert [path.name for path in files] == ["sample.json", "weights.safetensors"]
    assert files[0].read_text() == "sample.json"


def test_files_of_another_machine_come_from_the_store(
    client: ManagerClient, manager: InMemoryManager, tmp_path: Path
) -> None:
    _, content = archive_of({"model/sample.json": b"{}", "parameter.cfg": b"", "model/x": b""})
    manager.blobs[output_key(SEARCH, "t0", 2, OUTPUT_ARCHIVE)] = content

    files = fetch_model(client, SEARCH, "t0", tmp_path)

    assert [path.name for path in files] == ["sample.json"]


def test_trial_without_files_says_what_to_set(client: ManagerClient, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="save_models = True"):
        fetch_model(client, SEARCH, "t0", tmp_path)
