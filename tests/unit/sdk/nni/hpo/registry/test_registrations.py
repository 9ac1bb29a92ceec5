"""Algorithms that the user gave a name."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nni.hpo.json_value import JsonValue
from nni.hpo.registry import registrations
from nni.hpo.registry.factory import algorithms, create, find, validate

DEMO = Path(__file__).parents[6] / "examples" / "demo-tuner"
META = {
    "algoType": "tuner",
    "builtinName": "demotuner",
    "className": "demo_tuner.DemoTuner",
    "classArgsValidator": "demo_tuner.MyClassArgsValidator",
}


@pytest.fixture(autouse=True)
def _own_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.syspath_prepend(str(DEMO))


@pytest.mark.claim("hpo", 46)
def test_a_registered_algorithm_is_used_by_its_name() -> None:
    entry = registrations.register(META)

    assert (entry.name, entry.kind, entry.source) == ("demotuner", "tuner", "user")
    tuner = create("tuner", "demotuner", {"optimize_mode": "minimize"})
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})

    assert 0 <= tuner.generate_parameters(0)["x"] <= 1
    assert find("tuner", "demotuner").source == "user"
    assert [entry.name for entry in algorithms("tuner")][-1] == "demotuner"


def test_folder_of_settings_is_made_with_those_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))

    registrations.register(META)

    assert [entry.name for entry in registrations.registered()] == ["demotuner"]


def test_its_validator_checks_arguments() -> None:
    registrations.register(META)

    validate("tuner", "demotuner", {"optimize_mode": "minimize"}, {"anything": 1})
    with pytest.raises(ValueError, match="unknown argument 'mode'"):
        validate("tuner", "demotuner", {"mode": "minimize"})


def test_registering_again_replaces_and_unregistering_forgets() -> None:
    registrations.register(META)
    registrations.register({key: META[key] for key in META if key != "classArgsValidator"})
    validate("tuner", "demotuner", {"mode": 1})

    registrations.unregister("demotuner")

    assert registrations.registered() == ()
    with pytest.raises(ValueError, match="no algorithm is registered as 'demotuner'"):
        registrations.unregister("demotuner")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algoType": "tuners"}, "algoType must be one of tuner, assessor, advisor; got 'tuners'"),
        ({"builtinName": "TPE"}, "comes with NNI"),
        ({"builtinName": "tpe"}, "'tpe' means the tuner TPE, which comes with NNI"),
        ({"builtinName": "GP"}, "'GP' means the tuner GPTuner"),
        ({"builtinName": "../../name"}, "printable characters without a slash"),
        ({"builtinName": "red\x1b[31m"}, "printable characters without a slash"),
        ({"builtinName": "a" * 1_000_000}, "1 to 128 printable characters"),
        ({"className": "../../x.Tuner"}, "names of Python with dots between them"),
        ({"className": "..demo_tuner.DemoTuner"}, "names of Python with dots between them"),
        ({"className": "a." * 100_000 + "Tuner"}, "at most 500 characters"),
        ({"builtinName": ""}, "builtinName must be a text that is not empty"),
        ({"builtinName": None}, "builtinName must be given"),
        ({"className": "DemoTuner"}, "must name its module"),
        ({"className": "nowhere.DemoTuner"}, "'nowhere' cannot be imported"),
        ({"className": "demo_tuner.Other"}, "module 'demo_tuner' has no 'Other'"),
        ({"className": "demo_tuner.MyClassArgsValidator"}, "must be a subclass of Tuner"),
        (
            {"classArgsValidator": "demo_tuner.DemoTuner"},
            "must be a subclass of ClassArgsValidator",
        ),
        ({"name": "x"}, "unknown key 'name'"),
    ],
)
def test_wrong_meta_files_are_refused_and_change_nothing(
    change: dict[str, JsonValue], message: str
) -> None:
    meta = {key: value for key, value in (META | change).items() if key in META or key in change}

    with pytest.raises(ValueError, match=message):
        registrations.register(meta)

    assert registrations.registered() == ()


def test_names_of_nni_cannot_be_unregistered() -> None:
    with pytest.raises(ValueError, match="comes with NNI"):
        registrations.unregister("TPE")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"algorithms": [1]}',
        '{"algorithms": [{}]}',
        '{"algorithms": [{"algoType": "tuner", "builtinName": "x", "className": 1}]}',
        '{"algorithms": [{"algoType": "x", "builtinName": "x", "className": "m.C"}]}',
    ],
)
def test_a_broken_file_says_what_to_do(content: str) -> None:
    path = registrations.registry_file()
    path.parent.mkdir(parents=True)
    path.write_text(content)

    with pytest.raises(ValueError, match="mend or delete the file"):
        algorithms()


def test_two_at_once_are_both_kept() -> None:
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda n: registrations.register(META | {"builtinName": f"demo{n}"}), range(16)
            )
        )

    names = {entry.name for entry in registrations.registered()}
    assert names == {f"demo{n}" for n in range(16)}
    assert len(json.loads(registrations.registry_file().read_text())["algorithms"]) == 16
