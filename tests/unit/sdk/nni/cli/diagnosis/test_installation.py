import sys

from nni.cli.diagnosis.installation import OLDEST_PYTHON, check_packages, check_python


def test_this_interpreter_is_new_enough() -> None:
    (found,) = check_python()

    assert sys.version_info[:2] >= OLDEST_PYTHON
    assert found.result == "ok"
    assert sys.executable in found.explanation


def test_packages_of_this_installation_are_there() -> None:
    found = {finding.check: finding.result for finding in check_packages()}

    assert found == {"services": "ok", "nats-server": "ok", "extra hpo": "ok"}
