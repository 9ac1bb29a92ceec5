from __future__ import annotations

import pytest

from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.archive_names import check_name, is_saved

DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "name",
    [
        "events.log",
        f"values/{DIGEST}",
        "folder/log/nnimanager.log",
        "folder/trials/AbCde/.nni/state",
        "folder/checkpoint/mine.pt",
        "folder/trials/AbCde/environment.json",
        "outputs/AbCde/12/files.tar",
        "folder/" + "x/" * 100 + "x",
    ],
)
def test_what_a_saved_experiment_holds_passes(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "events.log/x",
        "other.log",
        "values/",
        f"values/{DIGEST.upper()}",
        f"values/{DIGEST}\n",
        f"values/../{DIGEST}",
        "folder/",
        "folder/../x",
        "folder/a/../../x",
        "folder/a//b",
        "folder/./x",
        "folder//etc/passwd",
        "/folder/x",
        "outputs/AbCde/stdout",
        "outputs/AbCde/1/other",
        "outputs/../1/stdout",
        "outputs/AbCde/x/stdout",
        "folder/a\\..\\b",
        "folder/a\x00b",
        "folder/a\nb",
        "folder/environment.json",
        "folder/db/events.log",
        "folder/checkpoint/algorithm.json",
        "folder/" + "x" * 256,
        "folder/" + "x/" * 101 + "x",
        "folder/" + "x/" * 600 + "x",
    ],
)
def test_everything_else_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        check_name(name)


def test_secrets_of_the_client_and_places_in_the_log_stay_behind() -> None:
    assert not is_saved("environment.json")
    assert not is_saved("db/events.log")
    assert not is_saved("checkpoint/algorithm.json")
    assert is_saved("trials/a/stdout")
