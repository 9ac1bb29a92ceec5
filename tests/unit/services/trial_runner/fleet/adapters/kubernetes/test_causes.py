import pytest

from svc_trial_runner.fleet.adapters.kubernetes.causes import (
    KubernetesRefusalError,
    Refusal,
    explained,
    is_temporary,
    is_unavailable,
    launch_failure,
    parse_refusal,
    platform_error,
    refused_field,
    refused_object,
    remedy_of,
)
from svc_trial_runner.fleet.domain.agents import AgentName

QUOTA = (
    'jobs.batch "a" is forbidden: exceeded quota: team, requested: count/jobs.batch=1, '
    "used: count/jobs.batch=4, limited: count/jobs.batch=4"
)


def test_refusal_has_reason_message_and_fields_of_the_status_object() -> None:
    field = "spec.template.spec.containers[0].image"
    body = {
        "kind": "Status",
        "reason": "Invalid",
        "message": "Job is\n invalid",
        "details": {"causes": [{"field": field}]},
    }

    assert parse_refusal(422, body, "") == Refusal(422, "Invalid", "Job is invalid", (field,))


def test_answer_of_a_proxy_is_shown_with_its_status() -> None:
    assert parse_refusal(502, None, "<html>bad gateway").message == (
        "HTTP status 502: <html>bad gateway"
    )


def test_words_are_shortened() -> None:
    assert len(explained("x " * 1000)) <= 400


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("ErrImagePull: not found", "imagePullSecrets"),
        ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "lower the request"),
        ("0/3 nodes: 3 node(s) had untolerated taint {gpu: }", "tolerations"),
        (QUOTA, "quota"),
        ("container agent ended: OOMKilled, exit code 137", "raise memory"),
        ("FailedMount: secret not found", "volumes"),
        ('PersistentVolumeClaim is not bound: "data"', "volumes"),
        ("Evicted: The node was low on resource: ephemeral-storage.", "ephemeralStorage"),
        ("/usr/bin/python3: No module named svc_trial_runner", "derive it"),
    ],
)
def test_known_words_have_a_remedy(words: str, part: str) -> None:
    assert part in remedy_of(words)


@pytest.mark.parametrize(
    ("status", "message", "temporary", "unavailable"),
    [
        (500, "etcdserver: no leader", True, True),
        (503, "unavailable", True, True),
        (499, "closed", False, False),
        (408, "time-out", True, False),
        (429, "too many requests", True, True),
        (409, "conflict", True, False),
        (410, "the provided continue parameter is too old", True, False),
        (403, QUOTA, True, False),
        (403, "you may not", False, False),
        (422, "invalid", False, False),
    ],
)
def test_refusals_that_may_pass_are_known(
    status: int, message: str, *, temporary: bool, unavailable: bool
) -> None:
    refusal = Refusal(status, "", message)

    assert (is_temporary(refusal), is_unavailable(refusal)) == (temporary, unavailable)


def test_login_that_has_expired_is_no_permanent_error() -> None:
    error = platform_error(Refusal(401, "Unauthorized", "Unauthorized"))

    assert "log in" in error.remedy
    assert not error.permanent


def test_missing_rights_lead_to_the_page_that_lists_them() -> None:
    error = platform_error(Refusal(403, "Forbidden", "you may not"))

    assert "docs/platforms/kubernetes.md" in error.remedy


def test_invalid_job_is_a_permanent_failure_in_the_words_of_the_cluster() -> None:
    name = AgentName("0123abcd", "exp-a", 1)

    failure = launch_failure(name, Refusal(422, "Invalid", "quantities must match"))

    assert (failure.name, failure.reason, failure.permanent) == (
        name,
        "quantities must match",
        True,
    )


@pytest.mark.parametrize(
    ("field", "option"),
    [
        ("spec.template.spec.nodeSelector", "nodeSelector"),
        ("spec.template.spec.containers[0].resources.limits[memory]", "memory"),
        ("spec.template.spec.volumes[3].name", "volumes"),
        ("spec.template.spec.hostIPC", "podTemplate"),
    ],
)
def test_path_of_a_refused_field_leads_to_the_option(field: str, option: str) -> None:
    assert refused_field(Refusal(422, "Invalid", "it is wrong", (field,))) == option


def test_problem_shows_the_value_of_the_option() -> None:
    refusal = Refusal(422, "Invalid", "no such class", ("spec.priorityClassName",))

    problem = refused_object(refusal, {"priorityClass": "low"})

    assert (problem.field, problem.value, problem.permanent) == ("priorityClass", "low", True)


def test_error_of_a_refusal_has_its_message_alone() -> None:
    refusal = Refusal(404, "NotFound", 'pods "a" not found')

    error = KubernetesRefusalError(refusal)

    assert str(error) == 'pods "a" not found'
    assert error.refusal is refusal


def test_words_are_shortened_to_400_characters() -> None:
    assert explained(" a\n b" + "x" * 1000) == "a b" + "x" * 397


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"kind": "Pod", "message": "a"}, "HTTP status 418: teapot"),
        ({"kind": "Status"}, "HTTP status 418"),
        ({"kind": "Status", "message": "a", "details": "b"}, "a"),
        ({"kind": "Status", "message": "a", "details": {"causes": ["b", {"field": ""}]}}, "a"),
    ],
)
def test_message_of_a_refusal_is_what_is_known(body: object, message: str) -> None:
    refusal = parse_refusal(418, body, "teapot")

    assert (refusal.message, refusal.fields) == (message, ())


def test_empty_answer_has_no_message() -> None:
    assert parse_refusal(502, None, " ").message == "HTTP status 502: no message"


def test_remedy_of_a_forbidden_request_is_that_of_its_words() -> None:
    error = platform_error(Refusal(403, "Forbidden", "violates PodSecurity"))

    assert error.remedy.startswith("set podSecurity: restricted")
    assert not error.permanent
    assert platform_error(Refusal(422, "Invalid", "no")).remedy == ""


def test_value_that_is_no_text_is_not_shown() -> None:
    refusal = Refusal(403, "Forbidden", QUOTA, ("limits.memory",))

    problem = refused_object(refusal, {"memory": 7})

    assert (problem.field, problem.value, problem.permanent) == ("memory", "", False)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("ImagePullBackOff", "look at image, imagePullSecrets and imagePullPolicy"),
        ("InvalidImageName", "look at image, imagePullSecrets and imagePullPolicy"),
        ("ErrImageNeverPull", "look at image, imagePullSecrets and imagePullPolicy"),
        ("CreateContainerConfigError: a",
         "look at secrets: a Secret or one of its keys is missing"),
        ("RunContainerError", "look at image, python and volumes"),
        ("CreateContainerError", "look at image, python and volumes"),
        ("StartError", "look at image, python and volumes"),
        ("ContainerCannotRun", "look at image, python and volumes"),
        ("exceeded quota: a", "lower the request or maxAgents, or ask for a larger quota"),
        ("Insufficient cpu", "lower the request, or wait for resources that become free"),
        ("node(s) didn't match Pod's node affinity", "look at nodeSelector and tolerations"),
        ("had taint {a: b}", "look at nodeSelector and tolerations"),
        ("that the pod didn't tolerate", "look at nodeSelector and tolerations"),
        ("pod has unbound immediate PersistentVolumeClaims", "look at volumes"),
        ("FailedAttachVolume", "look at volumes"),
        ("violates PodSecurity",
         "set podSecurity: restricted, and leave out what it does not allow"),
        ('serviceaccount "a" not found', "look at serviceAccount"),
        ("no PriorityClass with name a", "look at priorityClass"),
        ("Evicted: the node had disk pressure", "raise ephemeralStorage"),
        ("Pod ephemeral local storage usage exceeds", "raise ephemeralStorage"),
        ("exec: not found: /opt/python",
         "the image has no agent of NNI: derive it from the image of NNI's trial-runner"),
        ("/bin/sh: python3: not found",
         "the image has no agent of NNI: derive it from the image of NNI's trial-runner"),
        ("words of another kind", ""),
    ],
)  # fmt: skip
def test_remedy_is_that_of_the_first_known_words(words: str, remedy: str) -> None:
    assert remedy_of(words) == remedy
    assert explained(words) == (f"{words}; {remedy}" if remedy else words)


@pytest.mark.parametrize(
    ("path", "option"),
    [
        ("spec.tolerations[0].key", "tolerations"),
        ("spec.priorityClassName", "priorityClass"),
        ('no PriorityClass with name "a"', "priorityClass"),
        ("spec.serviceAccountName", "serviceAccount"),
        ('error looking up serviceaccount "a"', "serviceAccount"),
        ("spec.imagePullSecrets[0]", "imagePullSecrets"),
        ("spec.containers[0].image", "image"),
        ("spec.containers[0].resources.limits[nvidia.com/gpu]", "gpuResource"),
        ("spec.containers[0].resources.limits[amd.com/gpu]", "gpuResource"),
        ("spec.containers[0].resources.limits[ephemeral-storage]", "ephemeralStorage"),
        ("spec.containers[0].resources.limits[cpu]", "cpus"),
        ("spec.containers[0].volumeMounts[0].mountPath", "volumes"),
        ("spec.containers[0].env[0].name", "secrets"),
        ("metadata.labels", "labels"),
        ("metadata.annotations", "annotations"),
        ("exceeded quota: team", "namespace"),
        ('namespaces "a" not found', "namespace"),
    ],
)
def test_refusal_is_about_the_option_of_its_path_or_words(path: str, option: str) -> None:
    assert refused_field(Refusal(422, "Invalid", "no words", ("spec.odd", path))) == option
    assert refused_field(Refusal(422, "Invalid", path)) == option


def test_problem_of_a_refusal_has_the_words_of_the_cluster_and_the_remedy() -> None:
    problem = refused_object(Refusal(403, "Forbidden", QUOTA), {"namespace": "team"})

    assert (problem.field, problem.value) == ("namespace", "team")
    assert problem.rule == f"is refused by the cluster: {QUOTA}"
    assert problem.remedy == "lower the request or maxAgents, or ask for a larger quota"


def test_failure_of_a_launch_has_the_remedy_of_its_words() -> None:
    failure = launch_failure(AgentName("0123abcd", "exp-a", 1), Refusal(403, "Forbidden", QUOTA))

    assert failure.remedy == "lower the request or maxAgents, or ask for a larger quota"
    assert not failure.permanent
