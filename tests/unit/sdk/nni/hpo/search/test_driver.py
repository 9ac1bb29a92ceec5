"""Parts that the drivers of tuners and advisors share."""

import math
from typing import Any

import numpy as np

from nni.hpo.search.driver import (
    CallbackGuard,
    ParameterTable,
    Provenance,
    Suggestions,
    TrialEndCommand,
    released_by,
)


def test_guard_returns_the_result_of_a_callback() -> None:
    sent: list[dict[str, Any]] = []

    assert CallbackGuard(sent.append).call("sum", lambda a, b: a + b, 1, b=2) == 3
    assert sent == []


def test_guard_reports_an_exception_as_skipped() -> None:
    sent: list[dict[str, Any]] = []

    result = CallbackGuard(sent.append).call("trial_end", lambda: 1 / 0)

    assert result is None
    (message,) = sent
    assert message["failed"]["call"] == "trial_end"
    assert message["failed"]["skipped"]
    assert "ZeroDivisionError" in message["failed"]["traceback"]


def test_report_of_an_exception_holds_the_last_16000_characters() -> None:
    sent: list[dict[str, Any]] = []

    def fail() -> None:
        raise ValueError("a" * 20_000)

    CallbackGuard(sent.append).call("trial_end", fail)

    assert sent[0]["failed"]["traceback"] == "a" * 15_999 + "\n"


def test_suggestions_are_all_there_unless_said_otherwise() -> None:
    found = Suggestions(())

    assert (found.deferred, found.exhausted, found.released) == (0, False, ())


def test_logged_parameters_replace_different_ones_and_are_reported() -> None:
    sent: list[dict[str, Any]] = []
    table = ParameterTable(sent.append)
    table.put(3, {"x": 1})

    assert table.record(3, {"x": 2}) is False
    assert table.get(3) == {"x": 2}
    assert sent == [{"diverged": [3, {"x": 2}, {"x": 1}]}]


def test_equal_parameters_are_not_reported_whatever_their_numeric_types() -> None:
    sent: list[dict[str, Any]] = []
    table = ParameterTable(sent.append)
    table.put(3, {"x": np.int64(1), "y": math.nan})

    assert table.record(3, {"y": math.nan, "x": 1})
    assert sent == []


def test_removed_id_is_unknown() -> None:
    table = ParameterTable(list[dict[str, Any]]().append)
    table.put(3, {})

    table.forget(3)
    table.forget(3)

    assert 3 not in table
    assert table.get(3) is None


def test_provenance_counts_imported_samples() -> None:
    provenance = Provenance({"algorithm": "TPE"}, results=2)

    provenance.imported([{}, {}, {}])
    provenance.imported("a form of the tuner's own")

    assert provenance.now() == {"algorithm": "TPE", "results": 6}


def test_algorithm_without_checkpoints_releases_none() -> None:
    assert released_by(object()) == ()


def test_only_a_succeeded_trial_is_a_success() -> None:
    ends = [
        TrialEndCommand("t", 1, event, customized=False) for event in ("SUCCEEDED", "EARLY_STOPPED")
    ]

    assert [end.success for end in ends] == [True, False]
