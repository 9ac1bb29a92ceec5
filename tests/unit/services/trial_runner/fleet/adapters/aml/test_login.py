from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from svc_trial_runner.fleet.adapters.aml.adapter import AmlAdapter
from svc_trial_runner.fleet.adapters.aml.azure_requests import LoginError
from svc_trial_runner.fleet.adapters.platform_registry import load_platform
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import PlatformError
from svc_trial_runner.fleet.testing import INSTALLATION, POOL
from tests.support.local_platforms import front_context

LOGIN = "svc_trial_runner.fleet.adapters.aml.login"


class AzureFailure(Exception):
    """Error in place of that of the package, which is an extra."""


@dataclass
class Token:
    token: str
    expires_on: int


@dataclass
class Credential:
    """Credential whose tokens are valid for an hour from the second 0 on."""

    scopes: list[str] = field(default_factory=list)
    failure: str | None = None

    def get_token(self, scope: str) -> Token:
        if self.failure is not None:
            raise AzureFailure(self.failure)
        self.scopes.append(scope)
        return Token(f"token {len(self.scopes)}", 3600)


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module, imported with the classes of this test in place of the package's."""
    for name, content in (
        ("azure", {}),
        ("azure.core", {}),
        ("azure.core.exceptions", {"AzureError": AzureFailure}),
        ("azure.identity", {"DefaultAzureCredential": Credential}),
    ):
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    # Set first, so that the module is forgotten at the end of the test.
    monkeypatch.setitem(sys.modules, LOGIN, ModuleType(LOGIN))
    del sys.modules[LOGIN]
    return importlib.import_module(LOGIN)


def test_token_is_kept_until_five_minutes_before_its_end(login: Any) -> None:
    now = [0.0]
    credential = Credential()
    tokens = login.AzureLogin(credential, lambda: now[0])

    found = []
    for now[0] in (0.0, 3299.0, 3300.0):
        found.append(tokens.token("a"))

    assert found == ["token 1", "token 1", "token 2"]


def test_each_resource_has_a_token_of_its_own(login: Any) -> None:
    credential = Credential()
    tokens = login.AzureLogin(credential, lambda: 0.0)

    assert [tokens.token(scope) for scope in "aba"] == ["token 1", "token 2", "token 1"]
    assert credential.scopes == ["a", "b"]


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        ("no  credential\nwas found", "no credential was found"),
        ("", "AzureFailure"),
        (
            "all failed\n\tOther: no\n\tAzureCliCredential: not on path",
            "AzureCliCredential: not on path",
        ),
    ],
)
def test_missing_login_is_an_error_that_says_what_to_run(
    login: Any, failure: str, words: str
) -> None:
    tokens = login.AzureLogin(Credential(failure=failure))

    with pytest.raises(LoginError) as caught:
        tokens.token("a")

    assert str(caught.value) == words
    assert "az login" in caught.value.remedy
    assert not caught.value.permanent


def test_words_of_a_login_are_shortened_to_300_characters(login: Any) -> None:
    with pytest.raises(LoginError) as caught:
        login.AzureLogin(Credential(failure="a" * 400)).token("a")

    assert str(caught.value) == "a" * 300


def test_missing_package_is_named_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, LOGIN, ModuleType(LOGIN))
    del sys.modules[LOGIN]
    monkeypatch.setitem(sys.modules, "azure", None)

    with pytest.raises(PlatformError, match="platform aml needs a package") as caught:
        load_platform("aml")

    assert "nni-svc-trial-runner[aml]" in caught.value.remedy


def test_factory_makes_an_adapter_with_the_default_login(login: Any, tmp_path: Path) -> None:
    context = front_context(tmp_path, INSTALLATION, POOL, PlatformSection("aml", {}))

    assert isinstance(login.aml_adapter(context), AmlAdapter)
