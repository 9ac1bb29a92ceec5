import json
import os
from pathlib import Path

import pytest

from svc_trial_runner.adapters.environments import FileEnvironments
from svc_trial_runner.ports import LaunchError


def write(path: Path, **variables: str) -> str:
    path.write_text(json.dumps({"environment": variables, "interpreter": "/py/bin/python3"}))
    return str(path)


def environments() -> FileEnvironments:
    return FileEnvironments({"OWN": "1"}, "/own/python3")


async def test_no_file_means_the_agents_own() -> None:
    loaded = await environments().load("")

    assert loaded.variables == {"OWN": "1"}
    assert loaded.interpreter == "/own/python3"


async def test_file_has_variables_and_interpreter(tmp_path: Path) -> None:
    loaded = await environments().load(write(tmp_path / "e.json", A="b"))

    assert loaded.variables == {"A": "b"}
    assert loaded.interpreter == "/py/bin/python3"


async def test_same_file_gives_the_same_object_until_it_changes(tmp_path: Path) -> None:
    known = environments()
    path = write(tmp_path / "e.json", A="b")
    first = await known.load(path)
    assert await known.load(path) is first

    write(tmp_path / "e.json", A="changed")
    os.utime(path, ns=(1, 1))

    assert (await known.load(path)).variables == {"A": "changed"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"environment": 5}'])
async def test_unreadable_file_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "e.json"
    path.write_text(text)

    with pytest.raises(LaunchError, match=r"e\.json"):
        await environments().load(str(path))


async def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="gone"):
        await environments().load(str(tmp_path / "gone"))


async def test_link_and_pipe_in_the_place_of_the_file_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "other.json", SECRET="of another experiment")
    (tmp_path / "link.json").symlink_to("other.json")
    os.mkfifo(tmp_path / "pipe.json")

    for name in ("link.json", "pipe.json"):
        with pytest.raises(LaunchError, match="cannot be read"):
            await environments().load(str(tmp_path / name))


@pytest.mark.parametrize("interpreter", [{}, {"interpreter": ""}, {"interpreter": None}])
async def test_file_without_an_interpreter_has_none(
    tmp_path: Path, interpreter: dict[str, str | None]
) -> None:
    path = tmp_path / "e.json"
    path.write_text(json.dumps({"environment": {"A": 1}, **interpreter}))

    loaded = await environments().load(str(path))

    assert (loaded.variables, loaded.interpreter) == ({"A": "1"}, None)


async def test_cache_has_a_limit(tmp_path: Path) -> None:
    known = environments()
    paths = [write(tmp_path / f"{number}.json", A="b") for number in range(65)]
    first = [await known.load(path) for path in paths[:64]]
    assert await known.load(paths[0]) is first[0]

    last = await known.load(paths[64])

    assert await known.load(paths[64]) is last
    assert await known.load(paths[0]) is not first[0]
