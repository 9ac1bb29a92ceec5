import base64
import json
import os
import ssl
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
import yaml
from cryptography import x509

from nni.version import __version__
from svc_common.messaging.permissions import (
    compressor_user,
    dispatcher_user,
    fleet_user,
    manager_user,
    nas_user,
    runner_user,
    users_block,
)
from tests.support.chart import (
    FLEET,
    FLEET_ELSEWHERE,
    FLEET_WITHOUT_RIGHTS,
    STORE,
    container,
    named,
    peers_of,
    refusal,
    secret_items,
    secret_volume,
    workloads,
)
from tests.support.deployment import (
    CHART,
    IMAGES,
    ROOT,
    Refused,
    chart_objects,
    lint_chart,
    read_image,
    render_chart,
)
from tests.support.servers import require_binary

SCHEMA = json.loads((Path(__file__).parent / "kubernetes.schema.json").read_text())
POOL = {
    "name": "gpu",
    "replicas": 2,
    "slots": 4,
    "image": "lab/trials:1",
    "gpus": 1,
    "nodeSelector": {"kind": "gpu"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "resources": {"limits": {"memory": "8Gi"}},
}
CONTROLLER = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}]
INGRESS = {
    "enabled": True,
    "className": "nginx",
    "host": "nni.example.org",
    "grpcHost": "grpc.nni.example.org",
    "tlsSecret": "public",
    "annotations": {
        "cert-manager.io/cluster-issuer": "lab",
        "nginx.ingress.kubernetes.io/proxy-read-timeout": "60",
    },
}
DATA_POOL = {
    "name": "data",
    "volumes": [
        {"name": "imagenet", "persistentVolumeClaim": {"claimName": "imagenet", "readOnly": True}}
    ],
    "volumeMounts": [{"name": "imagenet", "mountPath": "/data", "readOnly": True}],
    "env": [
        {"name": "DATA_DIRECTORY", "value": "/data"},
        {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}},
    ],
}
CALLED = ("DISPATCHER", "COMPRESSOR", "NAS")
"""Services that the manager calls."""
POD = {"podSelector": {"matchLabels": {"app": "prometheus"}}}
VARIANTS: dict[str, dict[str, Any]] = {
    "least": {"s3": STORE},
    "one server, no redis, no policies": {
        "s3": STORE,
        "nats": {"replicas": 1, "storage": {"className": "fast"}},
        "redis": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "experiments": {"className": "shared"},
    },
    "certificates and callers of one's own": {
        "s3": STORE,
        "auth": {"accessSecret": "callers"},
        "tls": {"existingSecret": "from-cert-manager"},
    },
    "secret of one's own, pools, private registry": {
        "s3": {"endpoint": "https://s3.example.org"},
        "auth": {"existingSecret": "mine"},
        "image": {"registry": "registry.example.org/nni", "tag": "x", "pullSecrets": ["key"]},
        "runnerPools": [{"name": "local"}, POOL],
        "networkPolicy": {"managerFrom": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
        "observability": {"metrics": True, "tracesEndpoint": "http://collector:4317"},
    },
    "ingress, data sets": {
        "s3": STORE,
        "manager": {"replicas": 2, "ingress": INGRESS},
        "networkPolicy": {"managerFrom": CONTROLLER},
        "runnerPools": [{"name": "local"}, DATA_POOL],
    },
    "load balancer": {
        "s3": STORE,
        "manager": {
            "replicas": 1,
            "service": {
                "type": "LoadBalancer",
                "annotations": {"example.org/kind": "internal"},
                "sourceRanges": ["192.0.2.0/24"],
            },
        },
        "networkPolicy": {"managerFrom": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
        "tls": {"names": ["nni.example.org"]},
    },
    "fleet": FLEET,
    "fleet with agents of operators, in a namespace of their own, and machines elsewhere": (
        FLEET_ELSEWHERE
    ),
    "fleet without rights, in plain text": FLEET_WITHOUT_RIGHTS,
}
OF_OTHERS = {"imagenet", "hub", "fleet-ssh"}
"""Claims and secrets that the values name and the chart does not make."""


def tls_files(objects: list[dict[str, Any]], service: str = "manager") -> dict[str, bytes]:
    """Return the certificates that the chart makes for a service, by name of file."""
    (secret,) = named(objects, "Secret").values()
    names = {"ca.crt": "ca.crt", f"{service}.crt": "tls.crt", f"{service}.key": "tls.key"}
    return {name: base64.b64decode(secret["data"][key]) for key, name in names.items()}


def test_helm_finds_nothing_to_complain_of() -> None:
    assert lint_chart(VARIANTS["least"]) == []


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_objects_are_what_the_cluster_takes(values: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)

    for one in chart_objects(values):
        validator.validate(one)


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_names_are_unique_and_lead_somewhere(values: dict[str, Any]) -> None:
    objects = chart_objects(values)
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    claims, maps = named(objects, "PersistentVolumeClaim"), named(objects, "ConfigMap")
    secrets = {
        *named(objects, "Secret"),
        values.get("auth", {}).get("existingSecret"),
        values.get("auth", {}).get("accessSecret"),
        values.get("tls", {}).get("existingSecret"),
        *OF_OTHERS,
    }

    assert len(names) == len(set(names))
    for workload in workloads(objects):
        spec = workload["spec"]["template"]["spec"]
        volumes = {one["name"] for one in spec.get("volumes", [])}
        volumes |= {
            one["metadata"]["name"] for one in workload["spec"].get("volumeClaimTemplates", [])
        }
        assert {one["name"] for one in container(workload)["volumeMounts"]} == volumes
        for volume in spec.get("volumes", []):
            assert volume.get("persistentVolumeClaim", {}).get("claimName", "") in {
                "", *OF_OTHERS, *claims,
            }  # fmt: skip
            assert volume.get("configMap", {}).get("name", "") in {"", *maps}
        for variable in container(workload).get("env", []):
            # Those of a pool are for its trials.
            reference = variable.get("valueFrom", {}).get("secretKeyRef")
            assert reference is None or reference["name"] in OF_OTHERS
        for volume in spec.get("volumes", []):
            named_secret = volume.get("secret", {}).get("secretName")
            assert named_secret is None or named_secret in secrets


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_selectors_find_the_pods_that_are_meant(values: dict[str, Any]) -> None:
    objects = chart_objects(values)
    pods = [one["spec"]["template"]["metadata"]["labels"] for one in workloads(objects)]

    def found(selector: dict[str, str]) -> int:
        return sum(selector.items() <= labels.items() for labels in pods)

    for workload in workloads(objects):
        assert found(workload["spec"]["selector"]["matchLabels"]) == 1
    for service in named(objects, "Service").values():
        assert found(service["spec"]["selector"]) == 1
    for policy in named(objects, "NetworkPolicy").values():
        chosen = policy["spec"]["podSelector"]
        # Those of agents that the fleet starts choose pods that the chart has not.
        assert "matchLabels" not in chosen or found(chosen["matchLabels"]) >= 1


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_addresses_are_those_of_the_services(values: dict[str, Any]) -> None:
    objects = chart_objects(values)
    services = named(objects, "Service")
    ports = {
        (name, port["port"]) for name, one in services.items() for port in one["spec"]["ports"]
    }

    for workload in workloads(objects):
        variables = {
            one["name"]: one.get("value", "") for one in container(workload).get("env", [])
        }
        buses = [one for one in variables.get("NNI_NATS_URL", "").split(",") if one]
        addresses = [
            url.rpartition("/")[2].partition(".")[2] or url.rpartition("/")[2] for url in buses
        ]
        if workload["metadata"]["name"].endswith("-manager"):
            addresses += [variables[f"NNI_{one}_GRPC"] for one in CALLED]
        if workload["metadata"]["name"].endswith("-fleet"):
            addresses.append(variables["NNI_MANAGER_GRPC"])
        if "NNI_REDIS_URL" in variables:
            addresses.append(urlsplit(variables["NNI_REDIS_URL"]).netloc.rpartition("@")[2])
        for address in addresses:
            host, _, port = address.partition(":")
            assert (host, int(port)) in ports


@pytest.mark.parametrize("service", IMAGES)
def test_services_get_the_commands_and_folders_of_their_images(service: str) -> None:
    image = read_image(IMAGES[service])
    (workload,) = (
        one
        for one in workloads(chart_objects(VARIANTS["least"]))
        if container(one)["name"] == service
    )
    one = container(workload)
    variables = {item["name"]: item.get("value") for item in one["env"]}
    mounts = {mount["mountPath"] for mount in one["volumeMounts"]}

    assert one["image"] == f"nni/{service}:{__version__}"
    port = int(image.environment["NNI_HEALTH"].rpartition(":")[2])
    assert {"name": "health", "containerPort": port} in one["ports"]
    for probe, path in {"startup": "live", "liveness": "live", "readiness": "ready"}.items():
        assert one[f"{probe}Probe"]["httpGet"] == {"path": f"/{path}z", "port": "health"}
    assert "command" not in one, "the entry point of the image"
    assert {"/tmp", image.environment["NNI_HOME"]} < mounts
    shares_experiments = "/var/lib/nni/nni-experiments" in IMAGES[service].read_text()
    assert (f"{image.environment['HOME']}/nni-experiments" in mounts) is shares_experiments
    for name, text in image.environment.items():
        assert variables.get(name, text) == text
    pod = workload["spec"]["template"]["spec"]["securityContext"]
    assert image.user == f"{pod['runAsUser']}:{pod['runAsGroup']}"
    starts_user_code = "--code-user" in image.entrypoint
    assert pod.get("runAsNonRoot", False) is not starts_user_code
    capabilities = one["securityContext"]["capabilities"]
    assert capabilities["drop"] == ["ALL"]
    assert capabilities.get("add", []) == ["SETUID", "SETGID", "KILL"] * starts_user_code


def test_bus_of_three_keeps_streams_thrice() -> None:
    objects = chart_objects(VARIANTS["least"])

    replicas = named(objects, "StatefulSet")["demo-nats"]["spec"]["replicas"]
    counts = {
        variable["value"]
        for workload in workloads(objects)
        for variable in container(workload).get("env", [])
        if variable["name"] == "NNI_BUS_REPLICAS"
    }

    assert (replicas, counts) == (3, {"3"})


@pytest.mark.parametrize("replicas", [1, 3])
def test_bus_takes_the_configuration_and_the_variables_it_is_given(
    replicas: int, tmp_path: Path
) -> None:
    objects = chart_objects({"s3": STORE, "nats": {"replicas": replicas}})
    workload = named(objects, "StatefulSet")["demo-nats"]
    one = container(workload)
    (secrets := tmp_path / "secrets").mkdir()
    (running := tmp_path / "run").mkdir()
    for path in secret_items(workload, "secrets"):
        (secrets / path).write_text("nniX")
    for name, text in named(objects, "ConfigMap")["demo-nats"]["data"].items():
        (tmp_path / name).write_text(text)
    given = {item["name"]: item.get("value", "n1") for item in one["env"]}
    for name, text in tls_files(objects, "nats").items():
        (tmp_path / name).write_bytes(text)
    variables = {name: text.replace("/etc/nni/tls", str(tmp_path)) for name, text in given.items()}
    command = [
        word.replace("/etc/nats", str(tmp_path))
        .replace("/run/nats", str(running))
        .replace("/etc/nni/secrets", str(secrets))
        .replace("start.sh nats-server", f"start.sh {require_binary('nats-server')} -t")
        for word in one["command"]
    ]

    done = subprocess.run(
        command,
        env={**os.environ, **variables, "NNI_NATS_STORE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_certificate_of_the_chart_holds_for_the_names_of_its_services(tmp_path: Path) -> None:
    objects = chart_objects({"s3": STORE, "tls": {"names": ["nni.example.org"]}})
    expected = {
        "manager": {"demo-manager", "demo-manager.prod.svc", "nni.example.org"},
        "dispatcher": {"demo-dispatcher"},
        "compressor": {"demo-compressor"},
        "nas": {"demo-nas"},
        "redis": {"demo-redis"},
        "nats": {"demo-nats-0.demo-nats", "demo-nats-2.demo-nats"},
    }
    for service, hosts in expected.items():
        for name, text in tls_files(objects, service).items():
            (tmp_path / name).write_bytes(text)
        own = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        own.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")

        shown = x509.load_pem_x509_certificate((tmp_path / "tls.crt").read_bytes())
        names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

        assert {"localhost", *hosts} <= set(names.get_values_for_type(x509.DNSName))
        assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_each_service_has_a_key_of_its_own_and_agents_have_none() -> None:
    pods = {container(one)["name"]: one for one in workloads(chart_objects(VARIANTS["least"]))}

    keys = {name: secret_items(pod, "tls").get("tls.key") for name, pod in pods.items()}

    certified = ("manager", "dispatcher", "compressor", "nas", "nats", "redis")
    assert keys == {**{name: f"{name}.key" for name in certified}, "trial-runner": None}


def test_services_may_have_certificates_of_different_secrets() -> None:
    objects = chart_objects({"s3": STORE, "tls": {"existingSecrets": {"manager": "of-manager"}}})
    pods = {container(one)["name"]: one for one in workloads(objects)}

    assert secret_volume(pods["manager"], "tls")["secretName"] == "of-manager"
    assert secret_items(pods["manager"], "tls")["tls.key"] == "tls.key"
    assert secret_volume(pods["dispatcher"], "tls")["secretName"] == "demo-auth"


def test_plain_text_must_be_wanted() -> None:
    loud = chart_objects({"s3": STORE, "tls": {"enabled": False}})
    quiet = chart_objects(VARIANTS["least"])

    for objects, insecure in ((loud, "1"), (quiet, None)):
        for workload in workloads(objects):
            one = container(workload)
            if one["name"] in IMAGES:
                variables = {item["name"]: item.get("value") for item in one["env"]}
                assert variables.get("NNI_INSECURE") == insecure
                scheme = "nats://" if insecure else "tls://"
                assert variables["NNI_NATS_URL"].startswith(scheme)


def test_users_of_the_bus_have_the_permissions_that_the_services_know() -> None:
    objects = chart_objects({"s3": STORE, "runnerPools": [{"name": "local"}, {"name": "gpu"}]})

    users_conf = named(objects, "ConfigMap")["demo-nats"]["data"]["users.conf"]

    assert (
        users_conf.strip()
        == users_block(
            [
                (manager_user(), "$NNI_NATS_MANAGER_PASSWORD"),
                (dispatcher_user(), "$NNI_NATS_DISPATCHER_PASSWORD"),
                (compressor_user(), "$NNI_NATS_COMPRESSOR_PASSWORD"),
                (nas_user(), "$NNI_NATS_NAS_PASSWORD"),
                (fleet_user(), "$NNI_NATS_FLEET_PASSWORD"),
                (runner_user("pool-local", "local"), "$NNI_NATS_POOL_0_PASSWORD"),
                (runner_user("pool-gpu", "gpu"), "$NNI_NATS_POOL_1_PASSWORD"),
            ]
        ).strip()
    )


def test_agents_have_no_secret_but_their_own() -> None:
    for workload in workloads(chart_objects(VARIANTS["least"])):
        one = container(workload)
        if one["name"] != "trial-runner":
            continue
        keys = set(secret_items(workload, "secrets").values())
        (tls,) = (
            volume["secret"]["items"]
            for volume in workload["spec"]["template"]["spec"]["volumes"]
            if volume["name"] == "tls"
        )
        assert keys == {"runner-token", "nats-pool-local-password"}
        assert [item["key"] for item in tls] == ["ca.crt"]


def test_agents_have_a_limit_by_cores_unless_set_otherwise() -> None:
    pools = [{"name": "a"}, {"name": "b", "slots": 0}, {"name": "c", "slots": 3}]

    objects = chart_objects({"s3": STORE, "runnerPools": pools})

    slots = {}
    for pool in "abc":
        one = container(named(objects, "Deployment")[f"demo-runner-{pool}"])
        slots[pool] = {item["name"]: item.get("value") for item in one["env"]}["NNI_RUNNER_SLOTS"]
    assert slots == {"a": "auto", "b": "0", "c": "3"}


def test_pool_is_what_its_values_say() -> None:
    objects = chart_objects(VARIANTS["secret of one's own, pools, private registry"])

    pool = named(objects, "Deployment")["demo-runner-gpu"]
    one, spec = container(pool), pool["spec"]["template"]["spec"]
    variables = {item["name"]: item.get("value") for item in one["env"]}

    assert pool["spec"]["replicas"] == 2
    assert (variables["NNI_RUNNER_POOL"], variables["NNI_RUNNER_SLOTS"]) == ("gpu", "4")
    assert one["image"] == "lab/trials:1"
    assert one["resources"] == {"limits": {"memory": "8Gi", "nvidia.com/gpu": 1}}
    assert spec["nodeSelector"] == {"kind": "gpu"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]


def test_pool_has_the_data_sets_and_variables_of_its_values_and_other_pools_have_not() -> None:
    objects = named(chart_objects(VARIANTS["ingress, data sets"]), "Deployment")
    pool, other = objects["demo-runner-data"], objects["demo-runner-local"]

    assert DATA_POOL["volumes"][0] in pool["spec"]["template"]["spec"]["volumes"]
    assert DATA_POOL["volumeMounts"][0] in container(pool)["volumeMounts"]
    assert all(variable in container(pool)["env"] for variable in DATA_POOL["env"])
    assert "imagenet" not in json.dumps(other)
    assert "HF_TOKEN" not in json.dumps(other)


def test_ingress_leads_to_rest_and_grpc_of_the_manager_and_clients_learn_the_address() -> None:
    objects = chart_objects(VARIANTS["ingress, data sets"])
    ingresses = named(objects, "Ingress")
    ports = {one["name"] for one in named(objects, "Service")["demo-manager"]["spec"]["ports"]}
    variables = container(named(objects, "Deployment")["demo-manager"])["env"]

    assert set(ingresses) == {"demo-manager-http", "demo-manager-grpc"}
    for port, host, protocol in (
        ("http", "nni.example.org", "HTTPS"),
        ("grpc", "grpc.nni.example.org", "GRPCS"),
    ):
        one = ingresses[f"demo-manager-{port}"]
        (rule,) = one["spec"]["rules"]
        backend = rule["http"]["paths"][0]["backend"]["service"]
        assert port in ports
        assert backend == {"name": "demo-manager", "port": {"name": port}}
        assert rule["host"] == host
        assert one["spec"]["tls"] == [{"hosts": [host], "secretName": "public"}]
        assert one["spec"]["ingressClassName"] == "nginx"
        annotations = one["metadata"]["annotations"]
        assert annotations["nginx.ingress.kubernetes.io/backend-protocol"] == protocol
        # The default of 1 MB would refuse uploads.
        assert annotations["nginx.ingress.kubernetes.io/proxy-body-size"] == "0"
        assert annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"] == "60"
        assert annotations["cert-manager.io/cluster-issuer"] == "lab"
    address = {"name": "NNI_MANAGER_PUBLIC_GRPC", "value": "grpc.nni.example.org:443"}
    assert address in variables
    policy = named(objects, "NetworkPolicy")["demo-manager"]
    assert policy["spec"]["ingress"][0]["from"] == CONTROLLER


def test_manager_is_called_from_outside_only_where_that_is_wanted() -> None:
    inside = chart_objects(VARIANTS["least"])
    outside = chart_objects(VARIANTS["load balancer"])

    assert "Ingress" not in {one["kind"] for one in inside}
    assert "type" not in named(inside, "Service")["demo-manager"]["spec"]
    service = named(outside, "Service")["demo-manager"]
    assert service["spec"]["type"] == "LoadBalancer"
    assert service["spec"]["loadBalancerSourceRanges"] == ["192.0.2.0/24"]
    assert service["metadata"]["annotations"] == {"example.org/kind": "internal"}


@pytest.mark.parametrize(
    ("service", "port"),
    [
        ({}, ":7501"),
        ({"type": "LoadBalancer"}, ":7501"),
        ({"type": "NodePort", "nodePorts": {"http": 30080, "grpc": 30501}}, ":30501"),
    ],
)
def test_clients_learn_the_port_of_grpc_of_the_service(service: dict[str, Any], port: str) -> None:
    values = {
        "s3": STORE,
        "manager": {"replicas": 1, "service": service},
        "networkPolicy": {"managerFrom": CONTROLLER},
    }

    variables = container(named(chart_objects(values), "Deployment")["demo-manager"])["env"]

    assert {"name": "NNI_MANAGER_PUBLIC_GRPC", "value": port} in variables


def test_nothing_may_call_an_agent() -> None:
    policies = named(chart_objects(VARIANTS["least"]), "NetworkPolicy")

    assert policies["demo-trial-runner"]["spec"]["ingress"] == []


@pytest.mark.parametrize(
    ("component", "port"),
    [("redis", 6379), ("dispatcher", 7502), ("compressor", 7504), ("nas", 7505)],
)
def test_only_the_manager_calls_the_other_services(component: str, port: int) -> None:
    policies = named(chart_objects(VARIANTS["least"]), "NetworkPolicy")

    (rule,) = policies[f"demo-{component}"]["spec"]["ingress"]
    calls = policies["demo-manager-egress"]["spec"]["egress"]

    assert peers_of(rule, "from") == ["manager"]
    assert rule["ports"] == [{"port": port}]
    (called,) = (one for one in calls if one.get("ports") == rule["ports"])
    assert peers_of(called, "to") == [component]


def test_compressor_calls_the_bus_alone_and_holds_no_key_of_the_byte_store() -> None:
    objects = chart_objects(VARIANTS["least"])
    policy = named(objects, "NetworkPolicy")["demo-compressor-egress"]
    workload = named(objects, "Deployment")["demo-compressor"]

    _names, bus = policy["spec"]["egress"]

    assert peers_of(bus, "to") == ["nats"]
    assert set(secret_items(workload, "secrets").values()) == {"token", "nats-compressor-password"}
    assert not [one for one in container(workload)["env"] if "S3" in one["name"]]


def test_nas_service_calls_the_bus_and_what_is_outside_and_no_other_pod() -> None:
    objects = chart_objects(VARIANTS["least"])
    policy = named(objects, "NetworkPolicy")["demo-nas-egress"]
    workload = named(objects, "Deployment")["demo-nas"]

    _names, bus, outside = policy["spec"]["egress"]

    assert peers_of(bus, "to") == ["nats"]
    assert {tuple(peer) for peer in outside["to"]} == {("ipBlock",)}
    keys = {"token", "nats-nas-password", "s3-access-key", "s3-secret-key"}
    assert set(secret_items(workload, "secrets").values()) == keys


def test_strategies_have_the_image_data_sets_and_variables_of_the_values() -> None:
    values = {key: DATA_POOL[key] for key in ("volumes", "volumeMounts", "env")}
    objects = chart_objects({"s3": STORE, "nas": {"image": "lab/strategies:1", **values}})
    workload = named(objects, "Deployment")["demo-nas"]
    one = container(workload)

    assert one["image"] == "lab/strategies:1"
    assert DATA_POOL["volumes"][0] in workload["spec"]["template"]["spec"]["volumes"]
    assert DATA_POOL["volumeMounts"][0] in one["volumeMounts"]
    assert all(variable in one["env"] for variable in DATA_POOL["env"])
    assert "imagenet" not in json.dumps(named(objects, "Deployment")["demo-dispatcher"])


@pytest.mark.parametrize(
    ("component", "outside"),
    [
        ("nats", False),
        ("redis", False),
        ("manager", True),
        ("dispatcher", True),
        ("compressor", False),
        ("nas", True),
        ("trial-runner", True),
    ],
)
def test_no_pod_may_call_the_metadata_of_the_cloud(component: str, outside: bool) -> None:
    policies = named(chart_objects(VARIANTS["least"]), "NetworkPolicy")

    peers = [
        peer
        for rule in policies[f"demo-{component}-egress"]["spec"]["egress"]
        for peer in rule["to"]
    ]
    blocks = {peer["ipBlock"]["cidr"]: peer["ipBlock"] for peer in peers if "ipBlock" in peer}

    assert set(blocks) == ({"0.0.0.0/0", "::/0"} if outside else set())
    if outside:
        assert "169.254.0.0/16" in blocks["0.0.0.0/0"]["except"]
        assert "fd00:ec2::254/128" in blocks["::/0"]["except"]


def test_certificates_of_the_chart_end_within_years() -> None:
    files = tls_files(chart_objects(VARIANTS["least"]))

    for name, days in (("ca.crt", 1096), ("tls.crt", 398)):
        one = x509.load_pem_x509_certificate(files[name])
        assert one.not_valid_after_utc - one.not_valid_before_utc <= timedelta(days=days)


def test_every_pod_has_a_policy() -> None:
    objects = chart_objects(VARIANTS["least"])
    chosen = {
        one["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        for one in named(objects, "NetworkPolicy").values()
    }

    assert chosen == {
        one["metadata"]["labels"]["app.kubernetes.io/component"] for one in workloads(objects)
    }


def test_figures_and_traces_are_off_until_they_are_wanted() -> None:
    watched = {"metrics": True, "metricsFrom": [POD], "tracesEndpoint": "http://collector:4317"}
    quiet = chart_objects(VARIANTS["least"])
    loud = chart_objects(VARIANTS["least"] | {"observability": watched})

    def variables_of(objects: list[dict[str, Any]]) -> dict[str, str]:
        variables = container(named(objects, "Deployment")["demo-dispatcher"])["env"]
        return {one["name"]: one["value"] for one in variables if "value" in one}

    assert not {"NNI_METRICS", "OTEL_EXPORTER_OTLP_ENDPOINT"} & set(variables_of(quiet))
    assert variables_of(loud)["NNI_METRICS"] == "0.0.0.0:9464"
    assert variables_of(loud)["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://collector:4317"
    policy = named(loud, "NetworkPolicy")["demo-trial-runner-metrics"]
    assert policy["spec"]["ingress"] == [{"from": [POD], "ports": [{"port": 9464}]}]


def test_secret_holds_what_was_given_and_a_token_that_the_bus_can_read() -> None:
    (secret,) = named(chart_objects(VARIANTS["least"]), "Secret").values()
    texts = {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}

    assert (texts["s3-access-key"], texts["s3-secret-key"]) == ("who", "hidden")
    assert texts["token"].startswith("nni")
    assert len(texts["token"]) == 48


def test_secret_values_stand_nowhere_but_in_the_secret() -> None:
    values = {"s3": STORE, "auth": {"token": "token-of-this-test"}}

    texts = [json.dumps(one) for one in chart_objects(values) if one["kind"] != "Secret"]

    assert not any("hidden" in text or "token-of-this-test" in text for text in texts)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"s3": {**STORE, "endpoint": ""}}, "s3.endpoint must name an S3 server"),
        ({"s3": {"endpoint": "http://s3"}}, "s3.accessKey must be given"),
        ({"s3": {**STORE, "endpoint": "s3:9000"}}, "endpoint"),
        ({"s3": STORE, "nats": {"replicas": 2}}, "replicas"),
        ({"s3": STORE, "auth": {"token": "1234567890123456"}}, "token"),
        ({"s3": STORE, "runnerPools": [{"name": "A pool"}]}, "name"),
        ({"s3": STORE, "runnerPools": [{"name": "local", "slots": "many"}]}, "slots"),
        ({"s3": STORE, "mangaer": {}}, "mangaer"),
        ({"s3": STORE, "manager": {"replicas": 1, "service": {"type": "Public"}}}, "type"),
        (
            {"s3": STORE, "manager": {"replicas": 1, "service": {"type": "NodePort"}}},
            "grpc",
        ),
        (
            {"s3": STORE, "manager": {"replicas": 1, "service": {"type": "LoadBalancer"}}},
            "networkPolicy.managerFrom: name the callers",
        ),
        (
            {
                "s3": STORE,
                "manager": {"replicas": 1, "ingress": {**INGRESS, "grpcHost": ""}},
                "networkPolicy": {"managerFrom": CONTROLLER},
            },
            "manager.ingress: host (page and REST) and grpcHost",
        ),
        (
            {
                "s3": STORE,
                "runnerPools": [{"name": "a", "env": [{"name": "NNI_TOKEN", "value": ""}]}],
            },
            "env",
        ),
        (
            {
                "s3": STORE,
                "runnerPools": [{"name": "a", "volumes": [{"name": "tmp", "emptyDir": {}}]}],
            },
            "pool a, volumes: tmp is the name of a volume of the chart",
        ),
    ],
)
def test_values_that_cannot_work_are_refused(values: dict[str, Any], reason: str) -> None:
    assert reason in refusal(values)


def test_chart_has_the_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["appVersion"] == __version__
    assert chart["version"].replace("-dev.", ".dev") == __version__


def test_chart_carries_the_configuration_of_the_bus_and_no_copy_of_it() -> None:
    for name in ("nats.conf", "cluster.conf", "start.sh"):
        assert (CHART / "files" / name).resolve() == ROOT / "deploy" / "nats" / name


def test_several_managers_share_leases_and_reach_each_other() -> None:
    objects = chart_objects({"s3": STORE, "manager": {"replicas": 3}})

    manager = named(objects, "Deployment")["demo-manager"]
    one = container(manager)
    variables = {item["name"]: item for item in one["env"]}
    policy = named(objects, "NetworkPolicy")["demo-manager"]
    callers = [
        peer["podSelector"].get("matchLabels", {}).get("app.kubernetes.io/component")
        for rule in policy["spec"]["ingress"]
        for peer in rule["from"]
        if {"port": 7501} in rule["ports"] and {"port": 8080} in rule["ports"]
    ]

    assert manager["spec"]["replicas"] == 3
    assert manager["spec"]["strategy"] == {"type": "RollingUpdate"}
    assert variables["NNI_MANAGER_HOST"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert "manager" in callers


def test_several_managers_need_a_place_for_their_leases() -> None:
    values = {"s3": STORE, "manager": {"replicas": 2}, "redis": {"enabled": False}}

    refused = render_chart(values)

    assert isinstance(refused, Refused)
    assert "redis.enabled" in refused.reason
