import json
import os
import shutil
import ssl
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from nni.version import __version__
from nni_wire.access import load_entries
from svc_common.environment import SECRET_VARIABLES, read_secrets
from svc_common.messaging.permissions import (
    compressor_user,
    dispatcher_user,
    fleet_user,
    manager_user,
    nas_user,
    reloader_user,
    runner_user,
    users_block,
)
from tests.support.deployment import (
    DEPLOY,
    IMAGES,
    ROOT,
    SECRETS,
    SERVICE_IMAGES,
    compose_environment,
    compose_secrets,
    read_compose,
    read_image,
)
from tests.support.markdown import code_blocks

SCHEMA = json.loads((Path(__file__).parent / "compose.schema.json").read_text())
ADDRESSES = ("NNI_NATS_URL", "NNI_REDIS_URL", "NNI_S3_ENDPOINT")
SERVICES: dict[str, Any] = read_compose()["services"]
OVERRIDES = sorted(path.name for path in DEPLOY.glob("compose.*.yaml"))
CERTIFIED = ("nats", "redis", "s3", "dispatcher", "compressor", "nas", "manager", "fleet")
"""Services that show a certificate."""
CALLED = {"NNI_DISPATCHER_GRPC", "NNI_COMPRESSOR_GRPC", "NNI_NAS_GRPC"}
"""Addresses that the manager calls."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with what `make-secrets` has made, for tests that change nothing there."""
    folder = tmp_path_factory.mktemp("made")
    make_secrets(folder)
    return folder


def make_secrets(folder: Path) -> None:
    variables = {**os.environ, "NNI_DEPLOY_FOLDER": str(folder)}
    subprocess.run([str(DEPLOY / "make-secrets")], env=variables, check=True, capture_output=True)


def test_file_keeps_the_specification() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    jsonschema.validate(read_compose(), SCHEMA)


@pytest.mark.parametrize("name", SECRETS)
def test_secret_that_is_missing_is_asked_for(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        read_compose({key: text for key, text in SECRETS.items() if key != name})


def test_example_of_the_variables_names_every_one_of_them_and_no_secret() -> None:
    lines = (DEPLOY / "env.example").read_text().splitlines()
    example = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    text = (DEPLOY / "compose.yaml").read_text()

    assert all(f"${{{name}" in text for name in example)
    assert set(SECRETS) <= set(example)
    assert {example[name] for name in SECRETS if name != "NNI_S3_ACCESS_KEY"} == {""}


def test_one_command_makes_all_secrets_and_keeps_them(tmp_path: Path) -> None:
    command = [str(DEPLOY / "make-secrets"), "box.example.org", "192.0.2.7"]
    variables = {**os.environ, "NNI_DEPLOY_FOLDER": str(tmp_path)}
    for _ in range(2):
        subprocess.run(command, env=variables, check=True, capture_output=True)
        made = (tmp_path / ".env").read_text()
    lines = dict(
        line.split("=", 1) for line in made.splitlines() if "=" in line and not line.startswith("#")
    )
    context = ssl.create_default_context(cafile=str(tmp_path / "certs" / "ca.crt"))
    for service in CERTIFIED:
        files = (tmp_path / "certs" / f"{service}.crt", tmp_path / "certs" / f"{service}.key")
        context.load_cert_chain(*files)

    assert len({lines[name] for name in SECRETS}) == len(SECRETS)
    assert all(len(lines[name]) > 40 for name in SECRETS if name != "NNI_S3_ACCESS_KEY")
    assert load_entries((tmp_path / "certs" / "access" / "access.json").read_text()) == ()
    for path, mode in {".env": 0o600, "certs": 0o700, "certs/ca.key": 0o600}.items():
        assert (tmp_path / path).stat().st_mode & 0o777 == mode
    read_compose(lines)
    accounts = json.loads((tmp_path / "certs" / "s3.json").read_text())
    assert accounts["identities"][0]["credentials"] == [
        {"accessKey": lines["NNI_S3_ACCESS_KEY"], "secretKey": lines["NNI_S3_SECRET_KEY"]}
    ]


def test_certificates_satisfy_strict_verification_and_end_within_years(made: Path) -> None:
    authority, *services = (
        x509.load_pem_x509_certificate((made / "certs" / f"{name}.crt").read_bytes())
        for name in ("ca", *CERTIFIED)
    )

    # What `VERIFY_X509_STRICT` asks for, the default from Python 3.13 on.
    usage = authority.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.key_cert_sign
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).critical
    key = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    for service in services:
        signed_by = service.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        assert signed_by.key_identifier == key.key_identifier
    for one, days in ((authority, 1096), *((service, 398) for service in services)):
        assert one.not_valid_after_utc - one.not_valid_before_utc <= timedelta(days=days)


def _sign_again(folder: Path, lasting: timedelta) -> None:
    """Replace the services' certificate by one that differs in its end only."""
    old = x509.load_pem_x509_certificate((folder / "manager.crt").read_bytes())
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    builder = (
        x509.CertificateBuilder()
        .subject_name(old.subject)
        .issuer_name(old.issuer)
        .public_key(old.public_key())
        .serial_number(old.serial_number)
        .not_valid_before(old.not_valid_before_utc)
        .not_valid_after(old.not_valid_before_utc + lasting)
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    made = builder.sign(key, hashes.SHA256())
    (folder / "manager.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))


def test_certificate_that_ends_soon_is_renewed_for_the_same_names(tmp_path: Path) -> None:
    variables = {**os.environ, "NNI_DEPLOY_FOLDER": str(tmp_path)}
    folder = tmp_path / "certs"
    make = [str(DEPLOY / "make-secrets")]
    subprocess.run([*make, "box.example.org"], env=variables, check=True, capture_output=True)
    kept = (folder / "manager.crt").read_bytes()
    subprocess.run(make, env=variables, check=True, capture_output=True)
    assert (folder / "manager.crt").read_bytes() == kept
    _sign_again(folder, timedelta(days=1))

    subprocess.run(make, env=variables, check=True, capture_output=True)

    renewed = x509.load_pem_x509_certificate((folder / "manager.crt").read_bytes())
    names = renewed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"manager", "box.example.org"} <= set(names.get_values_for_type(x509.DNSName))
    assert renewed.not_valid_after_utc - renewed.not_valid_before_utc > timedelta(days=300)


def test_users_of_the_bus_have_the_permissions_that_the_services_know() -> None:
    shipped = (DEPLOY / "nats" / "users.conf").read_text()

    assert shipped.startswith("include passwords.conf")
    assert shipped.partition("\n")[2] == users_block(
        [
            (manager_user(), "$NNI_NATS_MANAGER_PASSWORD"),
            (dispatcher_user(), "$NNI_NATS_DISPATCHER_PASSWORD"),
            (compressor_user(), "$NNI_NATS_COMPRESSOR_PASSWORD"),
            (nas_user(), "$NNI_NATS_NAS_PASSWORD"),
            (fleet_user(), "$NNI_NATS_FLEET_PASSWORD"),
            (reloader_user(), "$NNI_NATS_FLEET_PASSWORD"),
            (runner_user("pool-local", "local"), "$NNI_NATS_POOL_PASSWORD"),
        ],
        "agents/agents.conf",
    )


def test_nothing_is_said_in_plain_text() -> None:
    for name in SERVICE_IMAGES:
        variables = compose_environment(name)
        assert "NNI_INSECURE" not in variables
        assert variables["NNI_TLS_CA_FILE"] == "/run/secrets/ca.crt"
        for address in (variables.get(key, "tls:") for key in ADDRESSES):
            assert address.startswith(("tls:", "rediss:", "https:"))
    certificates = {f"{name}.{kind}" for name in CERTIFIED for kind in ("crt", "key")}
    files = {"redis.conf", *(f"{name}.env" for name in SERVICE_IMAGES)}
    assert set(read_compose()["secrets"]) == {"ca.crt"} | certificates | files


@pytest.mark.parametrize("name", SERVICES)
def test_no_container_has_a_secret_in_its_environment_or_arguments(name: str) -> None:
    given = json.dumps([SERVICES[name].get("environment"), SERVICES[name].get("command")])

    assert not [text for text in SECRETS.values() if text in given]
    assert not [key for key in SECRET_VARIABLES - {"NNI_REDIS_URL"} if f'"{key}"' in given]


def test_each_service_has_a_key_of_its_own_and_agents_have_none() -> None:
    keys = {}
    for name in SERVICES:
        mounted = compose_secrets(name, Path("certs"))
        keys[name] = [str(file) for inside, file in mounted.items() if inside.endswith(".key")]

    assert keys == {name: [f"certs/{name}.key"] for name in CERTIFIED} | {"trial-runner": []}


def test_secrets_are_closed_to_other_users_where_user_code_runs(made: Path) -> None:
    for service in ("dispatcher", "nas", "trial-runner"):
        assert "--code-user" in read_image(IMAGES[service]).entrypoint
        for inside, file in compose_secrets(service, made / "certs").items():
            if not inside.endswith(".crt"):
                assert file.stat().st_mode & 0o777 == 0o600
    for service in ("compressor", "manager"):
        assert "--code-user" not in read_image(IMAGES[service]).entrypoint


def test_secret_of_a_newer_service_is_added_to_an_older_file_of_variables(
    tmp_path: Path, made: Path
) -> None:
    shutil.copytree(made / "certs", tmp_path / "certs")
    kept = {**SECRETS}
    del kept["NNI_NATS_COMPRESSOR_PASSWORD"]
    # The last line has no end, as some editors leave it.
    (tmp_path / ".env").write_text("\n".join(f"{name}={text}" for name, text in kept.items()))

    make_secrets(tmp_path)

    lines = (tmp_path / ".env").read_text().splitlines()
    assert lines[:-1] == [f"{name}={text}" for name, text in kept.items()]
    name, _, drawn = lines[-1].partition("=")
    assert name == "NNI_NATS_COMPRESSOR_PASSWORD"
    secrets = read_secrets(tmp_path / "certs" / "compressor.env")
    assert secrets == {"NNI_TOKEN": SECRETS["NNI_TOKEN"], "NNI_NATS_PASSWORD": drawn}


def test_compressor_reaches_the_bus_alone_and_stores_nothing() -> None:
    service = SERVICES["compressor"]

    assert service["networks"] == ["bus"]
    assert "volumes" not in service
    assert not [name for name in compose_environment("compressor") if "S3" in name]


@pytest.mark.parametrize(
    ("service", "variable", "extra"),
    [("nas", "NAS_EXTRA", "nas"), ("trial-runner", "RUNNER_EXTRA", "compression")],
)
def test_image_of_user_code_is_built_with_the_extra_that_is_asked_for(
    service: str, variable: str, extra: str
) -> None:
    built = [
        read_compose(variables)["services"][service]["build"]["args"]
        for variables in (SECRETS, {**SECRETS, variable: extra})
    ]

    assert built == [{"EXTRA": ""}, {"EXTRA": extra}]


def test_names_of_an_older_certificate_are_kept_for_the_manager(tmp_path: Path) -> None:
    variables = {**os.environ, "NNI_DEPLOY_FOLDER": str(tmp_path)}
    folder = tmp_path / "certs"
    make = [str(DEPLOY / "make-secrets")]
    subprocess.run([*make, "box.example.org"], env=variables, check=True, capture_output=True)
    (folder / "manager.crt").rename(folder / "tls.crt")
    (folder / "manager.key").rename(folder / "tls.key")

    subprocess.run(make, env=variables, check=True, capture_output=True)

    made = x509.load_pem_x509_certificate((folder / "manager.crt").read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "box.example.org" in names.get_values_for_type(x509.DNSName)
    assert not (folder / "tls.key").exists()


def test_each_service_is_its_own_user_of_the_bus() -> None:
    users = {name: compose_environment(name)["NNI_NATS_USER"] for name in SERVICE_IMAGES}

    assert users == {
        "manager": "manager",
        "dispatcher": "dispatcher",
        "compressor": "compressor",
        "nas": "nas",
        "trial-runner": "pool-local",
        "fleet": "fleet",
    }


def test_agents_have_no_secret_but_their_own(tmp_path: Path, made: Path) -> None:
    shutil.copytree(made / "certs", tmp_path / "certs")
    (tmp_path / ".env").write_text("".join(f"{name}={text}\n" for name, text in SECRETS.items()))
    make_secrets(tmp_path)
    mounted = compose_secrets("trial-runner", tmp_path / "certs")
    given = set(read_secrets(mounted["/run/secrets/service.env"]).values())

    assert given == {SECRETS["NNI_RUNNER_TOKEN"], SECRETS["NNI_NATS_POOL_PASSWORD"]}
    assert set(mounted) == {"/run/secrets/ca.crt", "/run/secrets/service.env"}


@pytest.mark.parametrize("name", SERVICES)
def test_names_lead_somewhere(name: str) -> None:
    compose, service = read_compose(), SERVICES[name]
    volumes = [one.split(":") for one in service.get("volumes", [])]
    named = [parts[0] for parts in volumes if len(parts) > 1 and parts[0][0] not in "./"]
    files = [parts[0] for parts in volumes if parts[0].startswith(".")]

    assert set(service["networks"]) <= set(compose["networks"])
    assert set(named) <= set(compose["volumes"])
    assert all((DEPLOY / one).exists() for one in files if not one.startswith("./certs/"))
    mounted = {one if isinstance(one, str) else one["source"] for one in service.get("secrets", [])}
    assert mounted <= set(compose["secrets"])
    assert {one["source"] for one in service.get("configs", [])} <= set(compose.get("configs", {}))
    assert set(service.get("depends_on", {})) <= set(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_containers_hold_few_rights(name: str) -> None:
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    starts_user_code = name in IMAGES and "--code-user" in read_image(IMAGES[name]).entrypoint
    if starts_user_code:
        assert service["cap_add"] == ["DAC_READ_SEARCH", "SETUID", "SETGID", "KILL"]
    assert name == "s3" or starts_user_code or "cap_add" not in service


@pytest.mark.parametrize("name", SERVICES)
def test_containers_have_limits_of_memory_and_processes(name: str) -> None:
    assert SERVICES[name]["mem_limit"]
    assert SERVICES[name]["pids_limit"] > 0


@pytest.mark.parametrize("name", OVERRIDES)
def test_override_file_keeps_the_specification_and_leads_somewhere(name: str) -> None:
    merged = read_compose(override=(DEPLOY / name).read_text())

    jsonschema.validate(merged, SCHEMA)
    assert set(merged["services"]) == set(SERVICES), "it changes services and adds none"
    for service in merged["services"].values():
        sources = {one if isinstance(one, str) else one["source"] for one in service["secrets"]}
        named = [one.split(":")[0] for one in service.get("volumes", []) if ":" in one]
        assert sources <= set(merged["secrets"])
        assert {one for one in named if one[0] not in "./"} <= set(merged["volumes"])


def test_override_files_are_named_where_variables_are_explained() -> None:
    example, readme = (DEPLOY / "env.example").read_text(), (DEPLOY / "README.md").read_text()

    assert OVERRIDES == ["compose.gpu.yaml", "compose.minio.yaml"]
    assert all(f"COMPOSE_FILE=compose.yaml:{name}" in readme for name in OVERRIDES)
    assert f"COMPOSE_FILE=compose.yaml:{':'.join(OVERRIDES)}" in example


@pytest.mark.parametrize(("wanted", "count"), [(None, "all"), ("2", 2)])
def test_agent_gets_the_gpus_of_the_machine(wanted: str | None, count: str | int) -> None:
    variables = SECRETS if wanted is None else {**SECRETS, "RUNNER_GPUS": wanted}

    agent = read_compose(variables, (DEPLOY / "compose.gpu.yaml").read_text())["services"][
        "trial-runner"
    ]

    (device,) = agent["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": count, "capabilities": ["gpu"]}
    assert agent["environment"]["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"
    assert agent["environment"]["NNI_RUNNER_POOL"] == "local"


def test_minio_takes_the_place_of_the_object_store_with_the_same_account(made: Path) -> None:
    account = _lines(made / "certs" / "minio.env")
    services = read_secrets(made / "certs" / "manager.env")
    merged = read_compose(override=(DEPLOY / "compose.minio.yaml").read_text())["services"]
    store, manager = merged["s3"], merged["manager"]["environment"]

    assert store["image"].startswith("minio/minio:RELEASE.")
    assert f":{manager['NNI_S3_ENDPOINT'].rpartition(':')[2]}" in store["command"]
    assert store["environment"]["MINIO_CONFIG_ENV_FILE"] == "/run/secrets/minio.env"
    assert "minio.env" in store["secrets"]
    assert account["MINIO_ROOT_USER"] == services["NNI_S3_ACCESS_KEY"]
    assert account["MINIO_ROOT_PASSWORD"] == services["NNI_S3_SECRET_KEY"]
    assert "minio:/data" in store["volumes"]
    assert "s3:/data" not in store["volumes"]
    assert {one["target"] for one in store["secrets"] if isinstance(one, dict)} == {
        "/run/minio/public.crt", "/run/minio/private.key", "tls.crt", "tls.key",
    }  # fmt: skip


def _lines(path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in path.read_text().splitlines())


def test_recipes_of_the_readme_are_valid_files_that_change_agents_or_fleet_only() -> None:
    recipes = [
        block.text
        for block in code_blocks(DEPLOY / "README.md")
        if block.language == "yaml" and block.text.startswith("services:")
    ]

    changed = []
    for recipe in recipes:
        merged = read_compose(override=recipe)
        jsonschema.validate(merged, SCHEMA)
        changed.append([name for name, one in merged["services"].items() if one != SERVICES[name]])
    assert changed == [["trial-runner"], ["fleet"]]


def test_code_of_this_machine_is_the_same_folder_for_all_who_check_or_run_it() -> None:
    mounts = {name: SERVICES[name].get("volumes", []) for name in IMAGES}

    with_code = {name for name, volumes in mounts.items() if "../examples:/code:ro" in volumes}

    assert with_code == {"manager", "dispatcher", "nas", "trial-runner"}


def test_clients_get_the_published_port_of_grpc() -> None:
    variables = {**SECRETS, "GRPC_PORT": "17501"}

    manager = read_compose(variables)["services"]["manager"]

    assert "127.0.0.1:17501:7501" in manager["ports"]
    assert manager["environment"]["NNI_MANAGER_PUBLIC_GRPC"] == ":17501"


def test_images_of_others_can_be_named_with_their_digests() -> None:
    digest = f"sha256:{'0' * 64}"
    variables = {
        f"{name}_IMAGE": f"lab/{name.lower()}:1@{digest}" for name in ("NATS", "REDIS", "S3")
    }

    compose = read_compose({**SECRETS, **variables})

    jsonschema.validate(compose, SCHEMA)
    assert compose["services"]["s3"]["image"] == f"lab/s3:1@{digest}"


@pytest.mark.parametrize("name", SERVICES)
def test_everything_is_watched(name: str) -> None:
    assert "healthcheck" in SERVICES[name] or name in SERVICE_IMAGES, "our images bring a check"


@pytest.mark.parametrize("name", SERVICE_IMAGES)
def test_our_services_are_built_from_this_repository(name: str) -> None:
    build = SERVICES[name]["build"]

    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert ROOT / build["dockerfile"] == SERVICE_IMAGES[name]
    assert SERVICES[name]["image"] == f"nni/{name}:{__version__}"
    assert compose_environment(name)["NNI_VERSION"] == __version__


@pytest.mark.parametrize("name", SERVICE_IMAGES)
def test_services_reach_the_servers_that_their_environment_names(name: str) -> None:
    environment = compose_environment(name)
    hosts = {
        one.rpartition("//")[2].rpartition("@")[2].partition("/")[0].partition(":")[0]
        for key, one in environment.items()
        if key in {"NNI_NATS_URL", "NNI_S3_ENDPOINT", "NNI_REDIS_URL"}
        or (name == "manager" and key in CALLED)
    }

    assert hosts
    for host in hosts:
        assert set(SERVICES[host]["networks"]) & set(SERVICES[name]["networks"])
        assert name == host or host in SERVICES[name]["depends_on"]


def test_only_manager_and_front_are_reached_from_outside_and_from_this_machine_only() -> None:
    published = {name: one["ports"] for name, one in SERVICES.items() if "ports" in one}

    assert list(published) == ["manager", "fleet"]
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)
    assert not any("7506" in port for port in published["manager"]), "for the front alone"


def test_fleet_has_no_rights_no_user_code_and_only_its_own_secrets(
    tmp_path: Path, made: Path
) -> None:
    shutil.copytree(made / "certs", tmp_path / "certs")
    (tmp_path / ".env").write_text("".join(f"{name}={text}\n" for name, text in SECRETS.items()))
    make_secrets(tmp_path)
    mounted = compose_secrets("fleet", tmp_path / "certs")
    fleet = SERVICES["fleet"]

    assert read_secrets(mounted["/run/secrets/service.env"]) == {
        "NNI_TOKEN": SECRETS["NNI_TOKEN"],
        "NNI_NATS_PASSWORD": SECRETS["NNI_NATS_FLEET_PASSWORD"],
    }
    assert fleet["user"] == "65532:65532"
    assert "--code-user" not in fleet["entrypoint"]
    assert not [name for name in compose_environment("fleet") if "S3" in name]
    assert set(fleet["networks"]) == {"bus", "front"}


def test_port_of_the_front_is_the_same_inside_and_outside() -> None:
    fleet = read_compose({**SECRETS, "FRONT_PORT": "9443", "FRONT_HOST": "gate.example.org"})[
        "services"
    ]["fleet"]

    assert fleet["ports"] == ["127.0.0.1:9443:9443"]
    assert str(fleet["environment"]["NNI_FRONT_PORT"]) == "9443"
    assert fleet["environment"]["NNI_FRONT_HOST"] == "gate.example.org"


def test_users_that_the_fleet_writes_are_read_by_bus_and_manager_and_by_no_one_else() -> None:
    mounted = {
        name: volume
        for name, one in SERVICES.items()
        for volume in one.get("volumes", [])
        if volume.startswith("./certs/agents:")
    }
    folder = compose_environment("fleet")["NNI_AGENT_USERS"]

    assert mounted == {
        "nats": "./certs/agents:/etc/nats/agents:ro",
        "manager": f"./certs/agents:{folder}:ro",
        "fleet": f"./certs/agents:{folder}",
    }
    assert compose_environment("manager")["NNI_AGENT_USERS"] == folder


def test_folder_of_agents_is_writable_for_the_fleet_and_kept_by_make_secrets(
    tmp_path: Path, made: Path
) -> None:
    shutil.copytree(made / "certs", tmp_path / "certs")
    shutil.copy(made / ".env", tmp_path / ".env")
    written = tmp_path / "certs" / "agents" / "agents.conf"
    before = written.read_text()
    written.write_text("# agents\n")

    make_secrets(tmp_path)

    assert before == ""
    assert written.read_text() == "# agents\n"
    assert written.parent.stat().st_mode & 0o777 == 0o777
    assert written.stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "certs").stat().st_mode & 0o777 == 0o700, "others cannot enter"


def test_secrets_of_pools_are_in_a_volume_of_manager_and_fleet() -> None:
    volume = f"pool-secrets:{compose_environment('manager')['NNI_HOME']}/pool-secrets"

    assert [name for name, one in SERVICES.items() if volume in one.get("volumes", [])] == [
        "manager",
        "fleet",
    ]
    for name in ("manager", "trial-runner"):
        assert "--mode=0700 /var/lib/nni/state/pool-secrets" in IMAGES[name].read_text()


def test_stores_and_bus_have_no_way_out() -> None:
    internal = {name for name, one in read_compose()["networks"].items() if one.get("internal")}

    assert internal == {"bus", "bytes", "views"}
    assert all(set(SERVICES[name]["networks"]) <= internal for name in ("nats", "redis", "s3"))


def test_trials_cannot_reach_redis() -> None:
    assert not set(SERVICES["trial-runner"]["networks"]) & set(SERVICES["redis"]["networks"])


def test_parts_of_the_object_store_that_ask_for_no_credentials_are_not_on_the_network() -> None:
    options = dict(word.partition("=")[::2] for word in SERVICES["s3"]["command"])

    assert options["-ip"] == options["-ip.bind"] == "127.0.0.1"
    assert {name for name in options if name.endswith(".bind")} == {"-ip.bind", "-s3.ip.bind"}
    assert options["-s3.port.iceberg"] == options["-s3.port.lance"] == "0"


def test_accounts_of_the_object_store_are_changed_with_a_certificate_of_its_own_only(
    made: Path,
) -> None:
    variables, names = SERVICES["s3"]["environment"], x509.NameOID
    certificate = x509.load_pem_x509_certificate((made / "certs" / "s3.crt").read_bytes())
    (own,) = certificate.subject.get_attributes_for_oid(names.COMMON_NAME)

    assert variables["WEED_GRPC_S3_ALLOWED_COMMONNAMES"] == own.value
    assert variables["WEED_GRPC_CA"] == "/run/secrets/ca.crt"
    assert variables["WEED_GRPC_S3_CERT"] == "/run/secrets/tls.crt"
    assert variables["WEED_GRPC_S3_KEY"] == "/run/secrets/tls.key"


def test_each_agent_has_a_state_of_its_own() -> None:
    home = compose_environment("trial-runner")["NNI_HOME"]

    assert home in SERVICES["trial-runner"]["volumes"], "a volume without a name: one a container"


def test_restart_of_the_manager_leaves_experiments_running() -> None:
    assert compose_environment("manager")["NNI_STOP_ON_TERM"] == "no"
