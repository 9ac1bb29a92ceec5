"""Local installation: its token is in two files and nowhere else."""

import json
import re
import stat
from pathlib import Path

import pytest

from tests.support.local_shape import LocalShape, running_shape
from tests.support.searched_files import content_of
from tests.support.servers import require_binary

CONFIG = """\
searchSpace: {x: {_type: uniform, _value: [0, 1]}}
trialCommand: python3 trial.py
trialConcurrency: 2
maxTrialNumber: 3
tuner: {name: TPE, classArgs: {seed: 1}}
assessor: {name: Medianstop}
trainingService: {platform: local}
"""
TRIAL = """\
import os
import nni
x = nni.get_next_parameter()["x"]
nni.report_intermediate_result(x)
print(dict(os.environ))
nni.report_final_result(x)
"""
OWN_FILES = {"endpoint.json", "nats.conf", "agents.json"}
"""Files of a local installation that may contain its secrets."""


def files_with(folder: Path, secret: str) -> list[str]:
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if secret.encode() in content_of(path)
    )


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_secrets_are_in_the_files_for_them_and_nowhere_else(tmp_path: Path) -> None:
    require_binary("nats-server")
    canary = "canary-of-a-remote-installation-41c7"
    with running_shape(tmp_path) as shape:
        (tmp_path / "trial.py").write_text(TRIAL)
        (tmp_path / "config.yml").write_text(CONFIG)
        remote = LocalShape(tmp_path, {"NNI_TOKEN": canary, "NNI_CA_FILE": canary})
        experiment = remote.create(tmp_path / "config.yml")
        shape.wait_for(experiment, "DONE")
        shape.nnictl("trial", "ls", experiment)
        shape.nnictl("doctor", check=False)
        shape.kill("manager")
        shape.wait_for(experiment, "DONE")
        token = str(shape.endpoint()["token"])
        config = (shape.home / "nats.conf").read_text()
        passwords = set(re.findall(r'password: "([^"]+)"', config))
        found = {
            secret: {Path(name).name for name in files_with(tmp_path, secret)} - OWN_FILES
            for secret in {token, canary, *passwords}
        }
        modes = {name: stat.S_IMODE((shape.home / name).stat().st_mode) for name in OWN_FILES}
        audit = [
            json.loads(line) for line in (shape.home / "log" / "audit.log").read_text().splitlines()
        ]
        audit_mode = stat.S_IMODE((shape.home / "log" / "audit.log").stat().st_mode)

    assert len(passwords) == 9
    assert token in passwords
    assert set().union(*found.values()) == set()
    assert set(modes.values()) == {0o600}
    assert audit_mode == 0o600
    assert any(
        line["what"].endswith("CreateExperiment")
        and (line["caller"], line["role"], line["outcome"]) == ("installation", "admin", "OK")
        and line["experiment"] == experiment
        for line in audit
    )
