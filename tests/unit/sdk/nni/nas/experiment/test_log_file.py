import logging
from pathlib import Path

from nni.nas.experiment.log_file import ExperimentLogFile


def test_records_of_the_library_are_written_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "log" / "experiment.log"
    log, level = ExperimentLogFile(path, debug=False), logging.getLogger("nni").level

    logging.getLogger("nni.nas.anything").info("during")
    log.close()
    log.close()
    logging.getLogger("nni.nas.anything").warning("after")

    text = path.read_text()
    assert "INFO (nni.nas.anything/MainThread) during" in text
    assert "after" not in text
    assert logging.getLogger("nni").level <= level


def test_debug_records_are_written_on_request(tmp_path: Path) -> None:
    logs = {debug: ExperimentLogFile(tmp_path / str(debug), debug=debug) for debug in (True, False)}

    logging.getLogger("nni.nas").debug("detail")
    for log in reversed(logs.values()):
        log.close()

    assert "detail" in (tmp_path / "True").read_text()
    assert (tmp_path / "False").read_text() == ""
