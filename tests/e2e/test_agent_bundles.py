"""Agents from a bundle on every supported Python of this machine, without an installation.

A worker has a shell and an interpreter; what its interpreter needs of compiled distributions comes
from the index that this environment was installed from.
"""

import asyncio
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.bundle_store import DirectoryBundleStore
from svc_trial_runner.fleet.adapters.bundles.worker_commands import (
    WorkerCommands,
    bundle_digest,
    read_report,
)
from svc_trial_runner.fleet.adapters.bundles.worker_facts import check_facts, read_facts
from svc_trial_runner.fleet.adapters.bundles.worker_folders import WorkerFolders
from svc_trial_runner.fleet.adapters.bundles.worker_processes import wait_until
from tests.support.pythons import oldest_and_newest
from tests.support.worker_shell import TIMEOUT_S, run_command

PYTHONS = oldest_and_newest()


@pytest.mark.parametrize("version", PYTHONS)
def test_agent_starts_from_a_bundle(tmp_path: Path, version: str) -> None:
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "python3").symlink_to(PYTHONS[version])
    store = DirectoryBundleStore(tmp_path / "bundles", tmp_path / "wheels")
    folders = WorkerFolders(str(tmp_path / "worker"))
    commands = WorkerCommands(str(folders.base), python_path=str(tmp_path / "python"))

    facts = read_facts(run_command(commands.probe()))
    check_facts(facts)
    bundle = asyncio.run(store.bundle(facts.python, facts.platform_tag))
    commands = commands.with_interpreter(facts.interpreter)
    read_report(run_command(commands.unpack(bundle)))
    read_report(run_command(commands.start("one", bundle_digest(bundle), b"{}")))

    def ended() -> bool:
        (agent,) = read_report(run_command(commands.status("one")))["agents"]
        return bool(agent["state"] == "ended")

    assert wait_until(ended, TIMEOUT_S)
    (agent,) = read_report(run_command(commands.status("one")))["agents"]
    assert ".".join(map(str, facts.python)) == version.rpartition(".")[0]
    assert agent["exit_code"] == 2
    assert "--settings must have format" in agent["reason"]
    read_report(run_command(commands.clean("", bundles=True)))
    assert not folders.base.exists()
