import re
import subprocess
import sys
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from threading import Thread

import grimp
import pytest

from tests.support.deployment import IMAGES, ROOT, read_image
from tests.support.image_requirements import (
    EXTRAS,
    FLEET,
    extra_requirements,
    fleet_requirements,
    image_requirements,
)
from tests.support.ports import free_port

WITHOUT_IMAGE = {"common", "standalone"}
"""Packages that no container runs."""
USER_CODE = {"dispatcher": "65531", "nas": "65530", "trial-runner": "65533"}
"""Services that start user code, and its user."""
USERS_OWN = {"pandas"}
"""Packages that a job imports only for values which a user's code has made with them."""
EXPORTER = {"onnx", "onnxscript"}
"""Packages that the export of torch imports; `check_onnx_packages` looks for them."""


def test_every_service_has_an_image() -> None:
    services = {
        path.parent.name
        for path in ROOT.glob("services/*/pyproject.toml")
        if path.parent.name not in WITHOUT_IMAGE
    }

    assert set(IMAGES) == services


@pytest.mark.parametrize("service", IMAGES)
def test_image_installs_its_service_and_every_sibling_it_needs(service: str) -> None:
    image = read_image(IMAGES[service])
    folders = {"nni-proto": "./proto", "nni": "./sdk", "nni-svc-common": "./services/common"}
    installed = {one.partition("[")[0] for one in image.installed}
    todo = [f"services/{service}"]
    needed = {f"./services/{service}"}

    while todo:
        with (ROOT / todo.pop() / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file)["project"]
        for requirement in project["dependencies"]:
            folder = folders.get(re.split(r"[\[=<>]", requirement)[0])
            if folder is not None and folder not in needed:
                needed.add(folder)
                todo.append(folder)

    assert installed == needed


@pytest.mark.parametrize("service", IMAGES)
def test_image_copies_what_it_installs_and_only_what_exists(service: str) -> None:
    image = read_image(IMAGES[service])

    pins = re.compile(rf"services/{service}/requirements(-[a-z]+)?\.txt")
    assert {f"./{source}" for source in image.copied if not pins.fullmatch(source)} == {
        one.partition("[")[0] for one in image.installed
    }
    assert all((ROOT / source).exists() for source in image.copied)


@pytest.mark.parametrize("service", IMAGES)
def test_change_of_the_sources_installs_no_package_of_others_again(service: str) -> None:
    text = IMAGES[service].read_text()

    packages = text.index("--require-hashes")
    assert text.index(f"COPY services/{service}/requirements.txt") < packages
    assert all(packages < text.index(f"COPY {one} ") for one in ("proto", "services/common"))
    # Own packages need no network.
    assert "--no-deps --no-build-isolation --no-index" in text[packages:]


@pytest.mark.parametrize("service", IMAGES)
def test_image_brings_the_drivers_of_a_server(service: str) -> None:
    installed = read_image(IMAGES[service]).installed
    with (ROOT / "services" / service / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"].get("optional-dependencies", {})

    assert (f"./services/{service}[server]" in installed) is ("server" in extras)
    assert ("./services/common[s3]" in installed) is ("server" in extras)
    # It knows neither byte store nor traces: the bus has all that it reads.
    assert ("server" in extras) is (service != "compressor")


@pytest.mark.parametrize("service", IMAGES)
def test_command_is_the_service_and_exists(service: str) -> None:
    *start, module = read_image(IMAGES[service]).command

    assert start == ["python", "-P", "-m"]
    assert module == f"svc_{service.replace('-', '_')}"
    assert find_spec(f"{module}.__main__") is not None


@pytest.mark.parametrize("service", IMAGES)
def test_health_check_asks_where_the_service_listens_and_starts_no_interpreter(
    service: str,
) -> None:
    image = read_image(IMAGES[service])
    port = image.environment["NNI_HEALTH"].rpartition(":")[2]

    assert image.health_check[:2] == ("bash", "-c")
    assert f"/dev/tcp/127.0.0.1/{port};" in image.health_check[2]
    assert "HEAD /readyz HTTP/1.0" in image.health_check[2]
    assert "python" not in " ".join(image.health_check)


class _Health(BaseHTTPRequestHandler):
    status = 200

    def do_HEAD(self) -> None:
        self.send_response(self.status if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_health_check_has_the_verdict_of_the_service(status: int, code: int) -> None:
    handler = type("Health", (_Health,), {"status": status})
    check = read_image(IMAGES["manager"]).health_check
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.handle_request, daemon=True).start()
        command = [word.replace("/8081", f"/{server.server_port}") for word in check]

        done = subprocess.run(command, check=False, env={}, capture_output=True)

    assert done.returncode == code


def test_health_check_fails_where_nothing_listens() -> None:
    check = read_image(IMAGES["manager"]).health_check
    command = [word.replace("/8081", f"/{free_port()}") for word in check]

    assert subprocess.run(command, check=False, env={}, capture_output=True).returncode == 1


@pytest.mark.parametrize("service", IMAGES)
def test_image_runs_as_a_user_that_does_not_own_its_code(service: str) -> None:
    text = IMAGES[service].read_text()

    image = read_image(IMAGES[service])
    entry = " ".join(image.entrypoint)
    starts_as_root = image.user == "0:0"

    assert starts_as_root == (service in USER_CODE)
    assert image.user == "65532:65532" or "svc_common.entry_point --user 65532:65532" in entry
    assert "COPY --from=build /opt/nni /opt/nni\n" in text, "the code belongs to root"


@pytest.mark.parametrize("service", IMAGES)
def test_base_images_are_the_oldest_python_that_is_supported(service: str) -> None:
    bases = re.findall(r"^FROM (\S+)", IMAGES[service].read_text(), re.MULTILINE)

    assert set(bases) == {"python:3.11-slim-bookworm"}


def test_agent_runs_under_an_init() -> None:
    assert read_image(IMAGES["trial-runner"]).entrypoint[:2] == ("tini", "--")


@pytest.mark.parametrize("service", IMAGES)
def test_entry_point_reads_the_secrets_of_every_service(service: str) -> None:
    entry = [word for word in read_image(IMAGES[service]).entrypoint if word not in {"tini", "--"}]

    assert entry[:4] == ["python", "-P", "-m", "svc_common.entry_point"]
    assert find_spec(entry[3]) is not None


def test_user_code_has_users_of_its_own() -> None:
    users = {}
    for service in USER_CODE:
        entry = read_image(IMAGES[service]).entrypoint
        uid, gid = entry[entry.index("--code-user") + 1].split(":")
        users[service] = uid
        assert f"useradd --uid {uid} --gid {gid}" in IMAGES[service].read_text()

    assert users == USER_CODE
    for service in ("compressor", "manager"):
        assert "--code-user" not in read_image(IMAGES[service]).entrypoint


def test_build_context_holds_no_more_than_the_images_copy() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        source.partition("/")[0] for path in IMAGES.values() for source in read_image(path).copied
    }

    assert "**" in lines
    assert let_in == copied


@pytest.mark.parametrize(("service", "extra"), [*((one, "") for one in IMAGES), *EXTRAS, FLEET])
def test_packages_of_others_are_pinned_by_hash_at_the_versions_of_the_tests(
    service: str, extra: str
) -> None:
    name = f"requirements{extra and f'-{extra}'}.txt"
    text = (ROOT / "services" / service / name).read_text()
    entries = re.split(r"\n(?=[A-Za-z0-9])", text.partition("\n")[2].strip())
    tested = {
        line.partition("==")[0].lower().replace("_", "-"): line.partition("==")[2]
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    pinned = dict(re.split(r"==", entry.split()[0].rstrip(";"), maxsplit=1) for entry in entries)
    if (service, extra) == FLEET:
        wanted = fleet_requirements()
    else:
        wanted = image_requirements(service) | (extra_requirements(extra) if extra else set())
    needed = {re.split(r"[\[<>=]", one)[0].lower() for one in wanted}

    assert all("--hash=sha256:" in entry for entry in entries)
    # Others are needed on other systems only, e.g. colorama.
    assert {name: tested.get(name, version) for name, version in pinned.items()} == pinned
    assert needed <= set(pinned)
    assert "--require-hashes" in IMAGES[service].read_text()


@pytest.mark.parametrize(
    ("service", "extra", "package"),
    [
        ("nas", "nas", "pytorch-lightning"),
        ("trial-runner", "compression", "safetensors"),
        ("trial-runner", "nas", "pytorch-lightning"),
    ],
)
def test_image_of_user_code_has_torch_if_its_build_argument_says_so(
    service: str, extra: str, package: str
) -> None:
    text = IMAGES[service].read_text()
    files = {
        name: (ROOT / "services" / service / f"requirements{name}.txt").read_text()
        for name in ("", f"-{extra}")
    }

    assert "ARG EXTRA=\n" in text, "the image is small unless more is asked for"
    assert '--requirement "requirements${EXTRA:+-$EXTRA}.txt"' in text
    assert f"COPY services/{service}/requirements-{extra}.txt" in text
    assert "\ntorch==" in files[f"-{extra}"]
    assert f"\n{package}==" in files[f"-{extra}"]
    assert "\ntorch==" not in files[""]


def test_image_of_compression_jobs_has_the_packages_that_jobs_import() -> None:
    graph = grimp.build_graph(
        "nni", include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )
    modules = set(graph.find_descendants("nni.compression.job"))
    modules |= {name for one in modules for name in graph.find_upstream_modules(one)}
    imported = {name for name in modules if graph.is_module_squashed(name)}
    text = (ROOT / "services/trial-runner/requirements-compression.txt").read_text()
    pins = re.findall(r"^([a-z0-9_.-]+)==", text, re.MULTILINE)
    pinned = {name.replace("-", "_") for name in pins}

    needed = (imported | EXPORTER) - sys.stdlib_module_names - USERS_OWN

    assert {"onnxruntime", "safetensors", "torch"} <= imported
    assert needed <= pinned
