from __future__ import annotations

from typing import Any

from svc_trial_runner.fleet.domain.section_secrets import with_secrets


def test_values_are_put_back_at_any_depth() -> None:
    job: dict[str, Any] = {
        "prerequisites": [{"name": "a"}, {"name": "b", "auth": {"username": "ann"}}],
        "secrets": {},
        "lab.org": {},
    }
    secrets = {
        "token": "of the section",
        "job.prerequisites[1].auth.password": "one",
        "job.secrets.data": "two",
        "job.lab.org.a.b/token": "three",
        "jobs.token": "of another option",
    }

    assert with_secrets(job, "job", secrets) == {
        "prerequisites": [
            {"name": "a"},
            {"name": "b", "auth": {"username": "ann", "password": "one"}},
        ],
        "secrets": {"data": "two"},
        "lab.org": {"a.b/token": "three"},
    }


def test_option_without_secrets_stays_as_it_is() -> None:
    assert with_secrets({"a": [1, "b"]}, "job", {}) == {"a": [1, "b"]}
    assert with_secrets(None, "job", {"job.token": "one"}) is None
