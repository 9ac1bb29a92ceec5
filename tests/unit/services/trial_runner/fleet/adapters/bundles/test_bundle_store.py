"""Bundles of small distributions, and one of this checkout from which an agent runs."""

import asyncio
import io
import os
import re
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.bundle_store import (
    DirectoryBundleStore,
    pack_files,
)
from svc_trial_runner.fleet.adapters.bundles.worker_bundles import unpack
from svc_trial_runner.fleet.adapters.bundles.worker_commands import bundle_digest
from svc_trial_runner.fleet.adapters.bundles.worker_folders import WorkerError, WorkerFolders
from svc_trial_runner.fleet.adapters.bundles.worker_machine import wheel_platform
from svc_trial_runner.fleet.ports import BundleStore, PlatformError
from tests.support.worker_shell import digest_of, write_distribution

PYTHON = sys.version_info[:2]
TAG = wheel_platform()
OTHER_TAG = "manylinux_2_36_s390x"
ROOT = "packed-example"
COMPILED = "compiled-example"


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a distribution and a compiled one that it requires."""
    folder = tmp_path / "site-packages"
    write_distribution(folder, ROOT, [COMPILED, 'never-there; sys_platform == "win32"'])
    python = f"cp{PYTHON[0]}{PYTHON[1]}"
    write_distribution(folder, COMPILED, tag=f"{python}-{python}-{TAG}")
    monkeypatch.syspath_prepend(str(folder))
    return folder


def open_store(folder: Path) -> DirectoryBundleStore:
    return DirectoryBundleStore(folder / "bundles", folder / "wheels", ("--no-index",), ROOT)


def packed_bundle(folder: Path, tag: str = TAG) -> Path:
    return asyncio.run(open_store(folder).bundle(PYTHON, tag))


def names_in(bundle: Path) -> list[str]:
    with tarfile.open(bundle) as archive:
        return archive.getnames()


def test_store_is_one_of_the_port(tmp_path: Path) -> None:
    store: BundleStore = open_store(tmp_path)

    assert isinstance(store, DirectoryBundleStore)


def test_bundle_has_entry_point_and_packages(tmp_path: Path) -> None:
    names = names_in(packed_bundle(tmp_path))

    assert {"run.py", "site/packed_example.py", "site/compiled_example.py"} < {*names}
    assert "requirements.txt" not in names


def test_name_of_a_bundle_has_its_hash(tmp_path: Path) -> None:
    bundle = packed_bundle(tmp_path)

    assert bundle_digest(bundle) == digest_of(bundle.read_bytes())


def test_bundle_is_packed_once(tmp_path: Path) -> None:
    bundle = packed_bundle(tmp_path)
    before = bundle.stat().st_ino

    assert packed_bundle(tmp_path) == bundle
    assert bundle.stat().st_ino == before


def test_changed_package_gives_another_bundle(tmp_path: Path, site: Path) -> None:
    first = packed_bundle(tmp_path)
    (site / "packed_further.py").write_text("NAME = 2\n")
    record = site / "packed_example-1.0.dist-info" / "RECORD"
    record.write_text(f"{record.read_text()}packed_further.py,,\n")

    assert bundle_digest(packed_bundle(tmp_path)) != bundle_digest(first)


def test_damaged_bundle_is_packed_again(tmp_path: Path) -> None:
    bundle = packed_bundle(tmp_path)
    content = bundle.read_bytes()
    bundle.write_bytes(content[:-1])

    assert packed_bundle(tmp_path) == bundle
    assert bundle.read_bytes() == content


def test_missing_file_of_a_distribution_is_named(tmp_path: Path, site: Path) -> None:
    (site / "packed_example.py").unlink()

    with pytest.raises(PlatformError, match=ROOT) as caught:
        packed_bundle(tmp_path)

    assert "pip install --force-reinstall" in caught.value.remedy


def test_wheel_that_cannot_be_had_is_left_to_pip_on_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial = packed_bundle(tmp_path, OTHER_TAG)
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    assert "site/compiled_example.py" not in names_in(partial)
    with partial.open("rb") as file, pytest.raises(WorkerError, match="compiled-example==1") as hit:
        unpack(WorkerFolders(str(tmp_path / "worker")), bundle_digest(partial), file)
    assert hit.value.code == "distribution_missing"


def test_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = io.BytesIO(), io.BytesIO()
    (tmp_path / "module.py").write_text("x = 1")
    pack_files({"b": b"2", "a": tmp_path / "module.py"}, first)
    os.utime(tmp_path / "module.py", (0, 0))

    pack_files({"a": tmp_path / "module.py", "b": b"2"}, second)

    assert first.getvalue() == second.getvalue()


def test_file_that_a_killed_process_left_is_removed_later(tmp_path: Path) -> None:
    folder = tmp_path / "bundles"
    folder.mkdir()
    for name, age in ((".new-old", 7200.0), (".new-fresh", 0.0)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)

    bundle = packed_bundle(tmp_path)

    assert sorted(path.name for path in folder.iterdir()) == [".new-fresh", bundle.name]


def test_bundles_that_were_not_used_for_longest_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "bundles"
    folder.mkdir()
    for age in range(1, 10):
        (folder / f"nni-agent-{age}.tar.gz").touch()
        os.utime(folder / f"nni-agent-{age}.tar.gz", (time.time() - age,) * 2)

    bundle = packed_bundle(tmp_path)

    left = {path.name for path in folder.iterdir()}
    assert left == {bundle.name, *(f"nni-agent-{age}.tar.gz" for age in range(1, 8))}


async def test_callers_at_once_get_one_bundle(tmp_path: Path) -> None:
    stores = [open_store(tmp_path), open_store(tmp_path)]

    paths = await asyncio.gather(*(store.bundle(PYTHON, TAG) for store in (*stores, *stores)))

    assert len(set(paths)) == 1
    assert list((tmp_path / "bundles").iterdir()) == [paths[0]]


def test_folder_that_cannot_be_written_has_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "bundles").touch()

    with pytest.raises(PlatformError, match="cannot be packed") as caught:
        packed_bundle(tmp_path)

    assert str(tmp_path / "bundles") in caught.value.remedy


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unpacked bundle of this checkout, below a home that has nothing else."""
    folder = tmp_path_factory.mktemp("checkout")
    store = DirectoryBundleStore(folder / "bundles", folder / "wheels", ("--no-index",))
    bundle = asyncio.run(store.bundle(PYTHON, TAG))
    folders = WorkerFolders(str(folder / "worker" / ".nni"))
    with bundle.open("rb") as file:
        unpack(folders, bundle_digest(bundle), file)
    return folders.bundle(bundle_digest(bundle))


def run_there(unpacked: Path, code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run code with the packages of the bundle and the standard library, and no others."""
    start = f"import sys; sys.path.append({str(unpacked / 'site')!r}); {code}"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", start, *arguments],
        env={"HOME": str(unpacked.parents[2]), "PATH": "/usr/bin:/bin"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def test_agent_runs_with_nothing_but_the_bundle(unpacked: Path) -> None:
    code = "import runpy; sys.argv[0] = 'x'; runpy.run_module('svc_trial_runner', None, '__main__')"

    done = run_there(unpacked, code, "--help")

    assert done.returncode == 0, done.stderr
    assert "--settings" in done.stdout


def test_all_modules_of_the_agent_are_imported_from_the_bundle(unpacked: Path) -> None:
    code = (
        "import pkgutil, importlib, svc_trial_runner as r, nni.trial.api, nni; "
        "names = [m.name for m in pkgutil.walk_packages(r.__path__, 'svc_trial_runner.')"
        " if 'fleet' not in m.name and '__main__' not in m.name]; "
        "[importlib.import_module(name) for name in names]; "
        "print(sorted({m.__file__ for m in sys.modules.values()"
        " if 'site-packages' in str(getattr(m, '__file__', ''))}))"
    )

    done = run_there(unpacked, code)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_agent_says_that_its_settings_are_wrong(unpacked: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text("{}")
    settings.chmod(0o600)

    done = subprocess.run(
        [sys.executable, "-I", "-S", str(unpacked / "run.py"), "agent", str(settings)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert "--settings" in done.stderr


def test_bundle_is_named_by_python_platform_inputs_and_content(tmp_path: Path) -> None:
    python = f"cp{PYTHON[0]}{PYTHON[1]}"

    complete, partial = packed_bundle(tmp_path), packed_bundle(tmp_path, OTHER_TAG)

    assert re.fullmatch(
        rf"nni-agent-{python}-{TAG}-[0-9a-f]{{12}}-[0-9a-f]{{64}}\.tar\.gz", complete.name
    )
    assert partial.name.startswith(f"nni-agent-{python}-{OTHER_TAG}-partial-")


def test_members_have_no_time_and_one_mode() -> None:
    target = io.BytesIO()

    pack_files({"a": b"1"}, target)

    assert target.getvalue()[4:8] == bytes(4)  # the time of gzip
    target.seek(0)
    with tarfile.open(fileobj=target) as archive:
        (member,) = archive.getmembers()
    assert (member.mode, member.mtime, member.size) == (0o644, 0, 1)


def test_bundle_that_is_used_again_is_the_last_used_one(tmp_path: Path) -> None:
    bundle = packed_bundle(tmp_path)
    os.utime(bundle, (1000, 1000))

    packed_bundle(tmp_path)

    assert bundle.stat().st_mtime > 1000


def test_damaged_bundle_is_removed_and_a_sound_one_beside_it_is_taken(tmp_path: Path) -> None:
    bundle = packed_bundle(tmp_path)
    before = bundle.stat().st_ino
    damaged = bundle.with_name(bundle.name.replace(bundle_digest(bundle), "0" * 64))
    damaged.write_bytes(b"cut")

    assert packed_bundle(tmp_path) == bundle
    assert bundle.stat().st_ino == before
    assert not damaged.exists()


def test_distribution_of_nni_without_a_list_of_files_is_not_left_to_pip(
    tmp_path: Path, site: Path
) -> None:
    write_distribution(site, "nni-example")
    (site / "nni_example-1.0.dist-info" / "RECORD").unlink()
    store = DirectoryBundleStore(
        tmp_path / "bundles", tmp_path / "wheels", ("--no-index",), "nni-example"
    )

    with pytest.raises(PlatformError, match="nni-example cannot be packed"):
        asyncio.run(store.bundle(PYTHON, TAG))


def test_distributions_left_to_pip_are_one_each_line_with_their_versions(
    tmp_path: Path, site: Path
) -> None:
    write_distribution(site, "top-example", [COMPILED, "absent-example>=2"])
    store = DirectoryBundleStore(
        tmp_path / "bundles", tmp_path / "wheels", ("--no-index",), "top-example"
    )

    bundle = asyncio.run(store.bundle(PYTHON, OTHER_TAG))

    with tarfile.open(bundle) as archive:
        wanted = archive.extractfile("requirements.txt")
        assert wanted is not None
        assert wanted.read() == b"absent-example>=2\ncompiled-example==1.0\n"


def test_partial_bundle_is_packed_anew_when_a_wheel_has_come(tmp_path: Path) -> None:
    partial = packed_bundle(tmp_path, OTHER_TAG)
    wheel = f"compiled_example-1.0-cp{PYTHON[0]}{PYTHON[1]}-abi3-{OTHER_TAG}.whl"
    (tmp_path / "wheels").mkdir(exist_ok=True)
    with zipfile.ZipFile(tmp_path / "wheels" / wheel, "w") as archive:
        archive.writestr("compiled_example.py", "x = 1")

    complete = packed_bundle(tmp_path, OTHER_TAG)

    assert complete != partial
    assert "site/compiled_example.py" in names_in(complete)
    assert "requirements.txt" not in names_in(complete)


def test_draft_of_a_bundle_that_cannot_be_packed_is_removed(tmp_path: Path, site: Path) -> None:
    module = site / "packed_example.py"
    module.unlink()
    module.symlink_to("/proc/self/mem")  # a file whose first byte cannot be read

    with pytest.raises(PlatformError, match="the bundle of agents cannot be packed"):
        packed_bundle(tmp_path)

    assert list((tmp_path / "bundles").iterdir()) == []


@pytest.mark.parametrize(("age_s", "stays"), [(3000.0, True), (3700.0, False)])
def test_draft_is_removed_after_an_hour(tmp_path: Path, age_s: float, *, stays: bool) -> None:
    draft = tmp_path / "bundles" / ".new-draft"
    draft.parent.mkdir()
    draft.touch()
    os.utime(draft, (time.time() - age_s,) * 2)

    packed_bundle(tmp_path)

    assert draft.exists() is stays
