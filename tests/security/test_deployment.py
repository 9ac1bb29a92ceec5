"""Permissions of a deployment's callers, each with a token, from another machine."""

import ssl

import httpx
import pytest

from tests.security.conftest import TOKENS, Fortress
from tests.support.searched_files import content_of
from tests.unit.services.manager.web.conftest import API

VIEWER, USER = TOKENS["vera"][1], TOKENS["uma"][1]


def test_user_runs_an_experiment_from_another_machine(fortress: Fortress, experiment: str) -> None:
    done = fortress.nnictl("experiment", "export", experiment, "-f", "/dev/stdout", "--type", "csv")

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip().splitlines()) >= 5


def test_viewer_sees_everything(fortress: Fortress, experiment: str) -> None:
    for words in (
        ("experiment", "list", "--all"),
        ("experiment", "show", experiment),
        ("trial", "ls", experiment),
        ("config", "show", experiment),
        ("runner", "list"),
    ):
        done = fortress.nnictl(*words, token=VIEWER)
        assert done.returncode == 0, (words, done.stderr)


def test_viewer_changes_nothing_and_gets_the_reason(fortress: Fortress, experiment: str) -> None:
    for words in (
        ("stop", experiment),
        ("update", "trialnum", experiment, "-v", "9"),
        ("experiment", "delete", experiment),
    ):
        done = fortress.nnictl(*words, token=VIEWER)
        assert done.returncode != 0, words
        assert "needs the role user, and vera has the role viewer" in done.stderr, done.stderr


def test_user_is_no_administrator(fortress: Fortress, experiment: str) -> None:
    runners = fortress.nnictl("runner", "list", "--json", token=USER)
    name = runners.stdout.split('"id": "')[1].split('"')[0]

    done = fortress.nnictl("runner", "drain", name, token=USER)

    assert done.returncode != 0
    assert "needs the role admin" in done.stderr


@pytest.mark.parametrize("token", ["", "wrong", "nni_" + "A" * 43])
def test_strangers_see_nothing(fortress: Fortress, token: str) -> None:
    done = fortress.nnictl("experiment", "list", "--all", token=token)

    assert done.returncode != 0
    assert "token" in done.stderr.lower()


def test_no_token_is_sent_to_an_unverified_service(fortress: Fortress) -> None:
    unknown = fortress.nnictl("experiment", "list", NNI_CA_FILE="")
    plain = fortress.nnictl("experiment", "list", NNI_ENDPOINT="http://box.example.org:8080")

    assert "certificate verify failed" in unknown.stderr.lower()
    assert "over http:// the token could be read" in plain.stderr


def test_services_of_another_machine_are_not_ended_from_here(fortress: Fortress) -> None:
    for word in ("up", "down"):
        done = fortress.nnictl(word)
        assert done.returncode == 2
        assert "started and ended there" in done.stderr


def test_rest_knows_the_same_roles(fortress: Fortress, experiment: str) -> None:
    context = ssl.create_default_context(cafile=str(fortress.authority.ca))
    with httpx.Client(verify=context, trust_env=False, timeout=60) as client:

        def status(method: str, path: str, token: str) -> int:
            headers = {"Content-Type": "application/json"}
            if token:
                headers["Authorization"] = f"Bearer {token}"
            url = f"{fortress.url}{API}/experiments/{experiment}{path}"
            return client.request(method, url, headers=headers).status_code

        assert status("GET", "/trial-jobs", "") == 401
        assert status("GET", "/trial-jobs", VIEWER) == 200
        assert status("DELETE", "/tensorboard-tasks", VIEWER) == 403
        assert status("DELETE", "/tensorboard-tasks", USER) == 200


def test_changes_and_refusals_leave_a_line(fortress: Fortress, experiment: str) -> None:
    fortress.nnictl("stop", experiment, token=VIEWER)
    fortress.nnictl("experiment", "list", token="wrong-canary-0a1b2c3d4e")
    lines = fortress.audit()

    created = next(line for line in lines if line["what"].endswith("/CreateExperiment"))
    assert (created["caller"], created["role"], created["by"]) == ("uma", "user", "token")
    assert (created["outcome"], created["experiment"]) == ("OK", experiment)
    assert created["peer"] in {"127.0.0.1", "::1"}
    assert created["at"].startswith("20")
    assert any(
        line.get("caller") == "vera" and line["outcome"] == "PermissionDeniedError"
        for line in lines
    )
    assert any(line["outcome"] == "UNAUTHENTICATED" for line in lines)


def test_no_secret_is_in_any_file_but_those_it_was_given_in(
    fortress: Fortress, experiment: str
) -> None:
    fortress.nnictl("experiment", "list", token="wrong-canary-0a1b2c3d4e")
    own = {fortress.folder / "bus" / name for name in ("users.conf",)}
    own |= set((fortress.folder / "bus").glob("*.env"))
    found = [
        (str(path.relative_to(fortress.folder)), secret[:12])
        for path in fortress.folder.rglob("*")
        if path not in own
        for content in [content_of(path)]
        for secret in [*fortress.secrets, "wrong-canary-0a1b2c3d4e"]
        if secret.encode() in content
    ]

    assert found == []


def test_trial_has_no_credentials(fortress: Fortress, experiment: str) -> None:
    (text, *_) = [path.read_text() for path in fortress.folder.rglob("environment")]

    assert "NNI_TRIAL_JOB_ID" in text
    for name in ("NNI_TOKEN", "NNI_NATS", "NNI_TLS", "NNI_ACCESS", "NNI_ENDPOINT"):
        assert name not in text


def test_trial_cannot_show_files_of_the_services_as_its_own(
    fortress: Fortress, experiment: str
) -> None:
    context = ssl.create_default_context(cafile=str(fortress.authority.ca))
    with httpx.Client(verify=context, trust_env=False, timeout=60) as client:
        client.headers["Authorization"] = f"Bearer {VIEWER}"
        base = f"{fortress.url}{API}/experiments/{experiment}"
        trial = client.get(f"{base}/trial-jobs").json()[0]["trialJobId"]
        answers = {
            name: client.get(f"{base}/trial-file/{trial}/{name}")
            for name in ("environment", "stdout", "link.txt", "stderr", "..%2F..%2Fx")
        }

    assert "the trial says" in answers["stdout"].text
    assert "NNI_TRIAL_JOB_ID" in answers["environment"].text
    assert "PATH=" not in answers["stderr"].text
    for name in ("link.txt", "stderr", "..%2F..%2Fx"):
        assert answers[name].status_code in {400, 404}, name
