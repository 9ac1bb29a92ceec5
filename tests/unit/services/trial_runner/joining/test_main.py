"""Tests of joining a pool, against a real TLS front."""

import argparse
import asyncio
from pathlib import Path

import pytest

from svc_common.errors import InvalidArgumentError
from svc_trial_runner.agent_settings import ConnectionKind
from svc_trial_runner.joining.__main__ import join_pool
from tests.support.enrolment_stage import enrolment_stage

pytest.importorskip("cryptography")


def options(address: str, folder: Path, gpu_indices: str = "") -> argparse.Namespace:
    return argparse.Namespace(
        address=f"https://{address}",
        pool="desks",
        slots=2,
        gpu_indices=gpu_indices,
        folder=str(folder),
    )


async def test_joined_machine_has_the_settings_of_an_agent_behind_the_front(
    tmp_path: Path,
) -> None:
    async with enrolment_stage(tmp_path, "unknown") as stage:
        word = await stage.invite()
        chosen = options(stage.endpoint.address, tmp_path / "machine", "0,2")

        settings = await asyncio.to_thread(join_pool, chosen, word)

        assert settings.name.endswith("-desks-1")
        assert (settings.platform, settings.slots, settings.gpu_indices) == ("joined", 2, (0, 2))
        assert settings.connection.kind is ConnectionKind.TLS
        assert settings.connection.bus == f"tls://{stage.endpoint.address}"
        assert settings.connection.authority == stage.endpoint.authority
        assert Path(settings.home).is_relative_to(tmp_path / "machine")
        files = [path for path in (tmp_path / "machine").rglob("*") if path.is_file()]
        assert not any(word.secret in path.read_text() for path in files)


async def test_machine_that_joins_again_is_known_by_its_folder(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path, "unknown") as stage:
        word = await stage.invite(use_limit=1)
        chosen = options(stage.endpoint.address, tmp_path / "machine")
        await asyncio.to_thread(join_pool, chosen, word)

        again = await asyncio.to_thread(join_pool, chosen, word)

        assert again.name.endswith("-desks-2")


async def test_wrong_gpu_indices_are_refused(tmp_path: Path) -> None:
    async with enrolment_stage(tmp_path, "unknown") as stage:
        word = await stage.invite()
        chosen = options(stage.endpoint.address, tmp_path / "machine", "all")

        with pytest.raises(InvalidArgumentError, match="--gpu-indices"):
            await asyncio.to_thread(join_pool, chosen, word)
