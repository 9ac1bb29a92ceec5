"""Names of algorithms: finding, checking, building."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from nni.hpo.advisor import MsgDispatcherBase
from nni.hpo.base import Assessor, Tuner
from nni.hpo.objectives import objectives_of
from nni.hpo.registry import factory
from nni.hpo.space.parser import ALL_TYPES
from tests.support.third_party import third_party

__all__ = ["third_party"]  # fixture

SUPPORTED = {
    "TPE": {*ALL_TYPES, "nested"},
    "Random": {*ALL_TYPES, "nested"},
    "GridSearch": {*ALL_TYPES, "nested"},
    "BatchTuner": set(),
    "Anneal": {*ALL_TYPES, "nested"},
    "Evolution": {*ALL_TYPES, "nested"},
    "PBTTuner": set(ALL_TYPES),
    "NetworkMorphism": {*ALL_TYPES, "nested"},
    "SMAC": {"choice", "randint", "uniform", "quniform", "loguniform"},
    "MetisTuner": {"numbers", "randint", "uniform", "quniform"},
    "GPTuner": {"numbers", "randint", "uniform", "quniform", "loguniform", "qloguniform"},
    "DNGOTuner": {"numbers", "randint", "uniform", "quniform", "loguniform", "qloguniform"},
}
for _supported in SUPPORTED.values():
    if "choice" in _supported:
        _supported.add("numbers")
EXAMPLES = {
    "choice": {"_type": "choice", "_value": ["a", "b"]},
    "numbers": {"_type": "choice", "_value": [1, 0.5, 16]},
    "nested": {
        "_type": "choice",
        "_value": [{"_name": "a"}, {"_name": "b", "y": {"_type": "choice", "_value": [1]}}],
    },
    "randint": {"_type": "randint", "_value": [0, 4]},
    "uniform": {"_type": "uniform", "_value": [0, 1]},
    "quniform": {"_type": "quniform", "_value": [0, 1, 0.5]},
    "loguniform": {"_type": "loguniform", "_value": [0.1, 1]},
    "qloguniform": {"_type": "qloguniform", "_value": [1, 10, 1]},
    "normal": {"_type": "normal", "_value": [0, 1]},
    "qnormal": {"_type": "qnormal", "_value": [0, 1, 0.5]},
    "lognormal": {"_type": "lognormal", "_value": [0, 1]},
    "qlognormal": {"_type": "qlognormal", "_value": [0, 1, 0.5]},
}
MATRIX = [
    (name, kind, kind in supported) for name, supported in SUPPORTED.items() for kind in EXAMPLES
]
BATCH = {"combine_params": {"_type": "choice", "_value": [{"x": 1}]}}


def test_built_in_algorithms_are_listed() -> None:
    names = {(entry.kind, entry.name, entry.source) for entry in factory.algorithms()}

    assert names >= {
        ("tuner", "TPE", "nni"),
        ("tuner", "Random", "nni"),
        ("tuner", "GridSearch", "nni"),
        ("tuner", "BatchTuner", "nni"),
        ("assessor", "Medianstop", "nni"),
    }


@pytest.mark.parametrize("entry", factory.algorithms(), ids=lambda entry: entry.name)
def test_documented_path_and_class_path_exist(entry: factory.AlgorithmEntry) -> None:
    for path in (entry.class_path.replace(":", "."), entry.documented_path):
        module, _, attribute = path.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), attribute), type)


@pytest.mark.claim("hpo", 13)
@pytest.mark.parametrize(("name", "kind", "supported"), MATRIX)
def test_support_matrix(name: str, kind: str, supported: bool) -> None:
    tuner = factory.create("tuner", name)
    space = {"x": EXAMPLES[kind]}

    if supported:
        tuner.update_search_space(space)
        factory.validate("tuner", name, {}, space)
        return
    with pytest.raises(ValueError, match=r"x|BatchTuner"):
        tuner.update_search_space(space)
    with pytest.raises(ValueError, match=r"x|BatchTuner"):
        factory.validate("tuner", name, {}, space)


@pytest.mark.claim("hpo", 14)
def test_tpe_accepts_a_choice_of_strings() -> None:
    tuner = factory.create("tuner", "TPE")

    tuner.update_search_space({"x": EXAMPLES["choice"]})

    assert tuner.generate_parameters(0)["x"] in ["a", "b"]


@pytest.mark.claim("hpo", 14)
@pytest.mark.parametrize("name", ["GPTuner", "MetisTuner", "DNGOTuner"])
@pytest.mark.parametrize("option", ["a", True, None, [1], float("nan"), 10**400])
def test_models_of_numbers_refuse_a_choice_of_anything_else(name: str, option: object) -> None:
    space = {"x": {"_type": "choice", "_value": [1, option]}}

    with pytest.raises(ValueError, match=f"'x'.*finite numbers in {name}"):
        factory.create("tuner", name).update_search_space(space)
    with pytest.raises(ValueError, match=f"'x'.*finite numbers in {name}"):
        factory.validate("tuner", name, {}, space)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_processes_of_several_outcomes_take_any_space(kind: str) -> None:
    tuner, space = factory.create("tuner", "GPTuner"), {"x": EXAMPLES[kind]}
    tuner.set_objectives(objectives_of({"a": "minimize", "b": "minimize"}))

    factory.validate("tuner", "GPTuner", {}, space, several_outcomes=True)
    tuner.update_search_space(space)

    with pytest.raises(ValueError, match="'x'"):
        factory.validate(
            "tuner", "GPTuner", {}, {"x": {"_type": "no", "_value": []}}, several_outcomes=True
        )


def test_several_outcomes_change_nothing_for_other_tuners() -> None:
    with pytest.raises(ValueError, match="finite numbers in MetisTuner"):
        factory.validate(
            "tuner", "MetisTuner", {}, {"x": EXAMPLES["choice"]}, several_outcomes=True
        )


@pytest.mark.claim("hpo", 13)
@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("name", ["Hyperband", "BOHB"])
def test_advisors_support_all_types_but_nested_choices(name: str, kind: str) -> None:
    space = {"x": EXAMPLES[kind]}

    if kind != "nested":
        factory.validate("advisor", name, {}, space)
        return
    with pytest.raises(ValueError, match=f"nested choice is not supported by {name}"):
        factory.validate("advisor", name, {}, space)


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [
        ("advisor", "Hyperband", "TRIAL_BUDGET"),
        ("advisor", "BOHB", "TRIAL_BUDGET"),
        ("tuner", "PBTTuner", "load_checkpoint_dir"),
        ("tuner", "PBTTuner", "save_checkpoint_dir"),
        ("tuner", "Evolution", "_name"),
    ],
)
def test_names_that_an_algorithm_claims_for_itself_are_refused(
    kind: factory.Kind, name: str, key: str
) -> None:
    with pytest.raises(ValueError, match=f"{key}.*reserved in {name}"):
        factory.validate(kind, name, {}, {key: EXAMPLES["uniform"]})


def test_space_that_an_argument_replaces_is_not_checked(tmp_path: Path) -> None:
    path = tmp_path / "space.pcs"
    path.write_text("x real [0, 1] [0]\n")

    factory.validate("advisor", "BOHB", {"config_space": str(path)}, {"free": "form"})
    with pytest.raises(ValueError, match="free"):
        factory.validate("advisor", "BOHB", {"config_space": None}, {"free": "form"})


def test_who_keeps_the_first_space_says_so() -> None:
    for entry in factory.algorithms():
        if entry.kind != "assessor" and entry.name != "SMAC":
            factory.check_replaceable(entry.kind, entry.name)

    with pytest.raises(ValueError, match="SMAC keeps the search space that it began with"):
        factory.check_replaceable("tuner", "SMAC", {"config_dedup": True})
    with pytest.raises(ValueError, match=r"BOHB has .* from config_space = 'a\.pcs'"):
        factory.check_replaceable("advisor", "BOHB", {"config_space": "a.pcs"})


UNABLE_TO_TAKE_OVER = {"PBTTuner", "NetworkMorphism"}


@pytest.mark.parametrize("name", sorted(UNABLE_TO_TAKE_OVER))
def test_tuner_that_ignores_earlier_results_does_not_take_over(name: str) -> None:
    with pytest.raises(ValueError, match="must learn the results of earlier trials"):
        factory.check_hand_over("TPE", name)


def test_other_tuners_take_over() -> None:
    names = {entry.name for entry in factory.algorithms("tuner")}

    for name in names - UNABLE_TO_TAKE_OVER:
        factory.check_hand_over("TPE", name)
        factory.check_hand_over("since unregistered", name)


def test_trials_that_go_on_from_checkpoints_are_not_taken_over() -> None:
    with pytest.raises(ValueError, match="cannot take over from PBTTuner"):
        factory.check_hand_over("PBT", "TPE")
    with pytest.raises(ValueError, match="cannot take over from PBTTuner"):
        factory.check_hand_over("PBTTuner", "")


def test_batch_space_is_checked_by_its_own_rule() -> None:
    factory.validate("tuner", "BatchTuner", {}, BATCH)
    with pytest.raises(ValueError, match="BatchTuner"):
        factory.validate("tuner", "BatchTuner", {}, {"x": 1})


@pytest.mark.parametrize("name", ["TPE2", "Grid", "TPEE", "", "Tuner", "SMAC9"])
def test_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match="tuner name must be one of Anneal, auto, BatchTuner"):
        factory.find("tuner", name)


def test_unknown_name_that_is_close_gets_a_hint() -> None:
    with pytest.raises(ValueError, match="did you mean 'TPE'"):
        factory.find("tuner", "TPEE")


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        ("tuner", "Batch tuner", "BatchTuner"),
        ("tuner", "Grid Search", "GridSearch"),
        ("tuner", "grid_search", "GridSearch"),
        ("tuner", "Network Morphism", "NetworkMorphism"),
        ("tuner", "Metis Tuner", "MetisTuner"),
        ("tuner", "Metis", "MetisTuner"),
        ("tuner", "GP", "GPTuner"),
        ("tuner", "gp", "GPTuner"),
        ("tuner", "PBT", "PBTTuner"),
        ("tuner", "DNGO", "DNGOTuner"),
        ("tuner", "Batch", "BatchTuner"),
        ("tuner", "random", "Random"),
        ("tuner", "RandomTuner", "Random"),
        ("assessor", "Median Stop", "Medianstop"),
        ("assessor", "Curve Fitting", "Curvefitting"),
        ("assessor", "MedianstopAssessor", "Medianstop"),
        ("advisor", "bohb", "BOHB"),
    ],
)
def test_capitals_and_the_ending_of_a_name_do_not_matter(
    kind: factory.Kind, name: str, meant: str
) -> None:
    assert factory.find(kind, name).name == meant


@pytest.mark.parametrize(
    ("name", "meant"), [("Random Search", "Random"), ("Naive Evolution", "Evolution")]
)
def test_title_of_a_page_of_nni_is_refused_with_the_name_to_use(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
        factory.find("tuner", name)


@pytest.mark.parametrize(
    ("name", "answer"), [("bohb", True), ("Hyperband", True), ("TPE", False), ("nothing", False)]
)
def test_advisor_is_told_by_its_name(name: str, answer: object) -> None:
    assert factory.is_advisor(name) is answer


def test_tuner_of_architectures_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match="got 'PPOTuner'; it searched network architectures only"):
        factory.find("tuner", "PPOTuner")


def test_tuner_name_is_no_assessor_name() -> None:
    with pytest.raises(ValueError, match="assessor name must be one of Curvefitting, Medianstop"):
        factory.find("assessor", "TPE")


@pytest.mark.claim("hpo", 47)
@pytest.mark.parametrize(
    ("kind", "name", "class_args", "text"),
    [
        ("assessor", "Medianstop", {"start_step": -1}, "start_step must be an int in"),
        ("tuner", "TPE", {"optimize_mode": "max"}, "optimize_mode must be one of"),
        ("tuner", "TPE", {"constant_liar_type": "median"}, "constant_liar_type must be one of"),
        ("tuner", "TPE", {"parallel_optimize": 1}, "parallel_optimize must be true or false"),
        ("tuner", "TPE", {"gamma": 1}, "unknown argument 'gamma'"),
        ("tuner", "Random", {"seed": -1}, "seed must be an int in"),
        ("tuner", "Evolution", {"population_size": 0}, "population_size must be an int in"),
        ("tuner", "PBTTuner", {"factors": [0]}, "factors must be a non-empty list"),
        ("tuner", "PBTTuner", {"fraction": 2}, "fraction must be a number in"),
        ("tuner", "PBTTuner", {"all_checkpoint_dir": ""}, "all_checkpoint_dir must be a path"),
        ("assessor", "Curvefitting", {}, "'epoch_num' is required"),
        ("assessor", "Curvefitting", {"epoch_num": 0}, "epoch_num must be an int in"),
        (
            "assessor",
            "Curvefitting",
            {"epoch_num": 9, "threshold": 0},
            "threshold must be a number",
        ),
        ("assessor", "Curvefitting", {"epoch_num": 9, "optimize_mode": "minimize"}, "must be one"),
        ("advisor", "Hyperband", {"exec_mode": "parallel"}, "exec_mode must be one of"),
        ("advisor", "Hyperband", {"eta": 1}, "eta must be an int in"),
        ("advisor", "BOHB", {"min_budget": 0}, "min_budget must be an int in"),
        ("advisor", "BOHB", {"min_budget": 3}, "max_budget must be an int > min_budget = 3, got 3"),
        ("advisor", "BOHB", {"config_space": "a.pcs"}, "config_space must be an absolute path"),
    ],
)
def test_bad_class_args_are_refused(
    kind: factory.Kind, name: str, class_args: dict[str, object], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        factory.validate(kind, name, class_args)
    with pytest.raises(ValueError, match=text):
        factory.create(kind, name, class_args)


def test_configuration_without_a_mode_means_maximize() -> None:
    tuner = factory.create("tuner", "TPE", seed=0)
    explicit = factory.create("tuner", "TPE", seed=0, optimize_mode="maximize")

    assert proposals(tuner) == proposals(explicit)
    assert proposals(tuner) != proposals(factory.create("tuner", "TPE", {}, 0, "minimize"))


def proposals(tuner: Tuner) -> list[object]:
    tuner.update_search_space({"x": EXAMPLES["uniform"]})
    seen: list[object] = []
    for parameter_id in range(25):
        parameters = tuner.generate_parameters(parameter_id)
        seen.append(parameters)
        tuner.receive_trial_result(parameter_id, parameters, parameters["x"])
    return seen


def test_class_args_win_over_seed_and_mode() -> None:
    tuner = factory.create("tuner", "Random", {"seed": 1}, seed=2)
    tuner.update_search_space({"x": EXAMPLES["uniform"]})
    other = factory.create("tuner", "Random", seed=1)
    other.update_search_space({"x": EXAMPLES["uniform"]})

    assert tuner.generate_parameters(0) == other.generate_parameters(0)


def test_validation_imports_no_numeric_package() -> None:
    program = (
        "import sys\n"
        "from nni.hpo.registry import factory\n"
        "factory.validate('tuner', 'TPE', {}, {'x': {'_type': 'uniform', '_value': [0, 1]}})\n"
        "assert not {'numpy', 'scipy', 'grpc', 'pydantic'} & set(sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0


@pytest.fixture
def code_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "custom_algorithms_of_a_test.py").write_text(
        "from nni.tuner import Tuner\n"
        "from nni.assessor import Assessor, AssessResult\n"
        "class MyTuner(Tuner):\n"
        "    def __init__(self, start=0): self.start = start\n"
        "    def update_search_space(self, search_space): pass\n"
        "    def receive_trial_result(self, parameter_id, parameters, value, **kwargs): pass\n"
        "    def generate_parameters(self, parameter_id, **kwargs): return self.start\n"
        "class MyAssessor(Assessor):\n"
        "    def assess_trial(self, trial_job_id, trial_history): return AssessResult.Good\n"
        "not_a_class = 3\n"
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "custom_algorithms_of_a_test", raising=False)
    return tmp_path


def test_custom_class_is_built_from_its_directory(code_directory: Path) -> None:
    tuner = factory.create_custom(
        "tuner", "custom_algorithms_of_a_test.MyTuner", {"start": 4}, code_directory
    )

    assert isinstance(tuner, Tuner)
    assert tuner.generate_parameters(0) == 4


def test_code_directory_is_first_on_the_import_path(code_directory: Path, tmp_path: Path) -> None:
    """A module of the same name elsewhere does not hide the user's class."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "custom_algorithms_of_a_test.py").write_text("class MyTuner: pass\n")
    sys.path.append(str(other))

    assert issubclass(
        factory.custom_class("tuner", "custom_algorithms_of_a_test.MyTuner", code_directory), Tuner
    )


def test_custom_assessor_is_an_assessor(code_directory: Path) -> None:
    name = "custom_algorithms_of_a_test.MyAssessor"

    assert isinstance(factory.create_custom("assessor", name, None, code_directory), Assessor)


@pytest.mark.parametrize(
    ("kind", "name", "error", "text"),
    [
        ("tuner", "MyTuner", ValueError, "must be qualified"),
        ("tuner", "custom_algorithms_of_a_test.Other", ValueError, "has no such class"),
        ("tuner", "custom_algorithms_of_a_test.not_a_class", ValueError, "has no such class"),
        ("tuner", "no_such_module_at_all.T", ImportError, "no_such_module_at_all"),
        ("tuner", "custom_algorithms_of_a_test.MyAssessor", TypeError, "subclass of Tuner"),
        ("advisor", "custom_algorithms_of_a_test.MyTuner", TypeError, "of MsgDispatcherBase"),
    ],
)
def test_faulty_custom_class_is_refused(
    code_directory: Path, kind: factory.Kind, name: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        factory.create_custom(kind, name, {}, code_directory)


@pytest.mark.claim("hpo", 50)
def test_constructor_without_a_given_argument_is_an_error(code_directory: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'end'"):
        factory.create_custom(
            "tuner", "custom_algorithms_of_a_test.MyTuner", {"end": 1}, code_directory
        )


@pytest.mark.usefixtures("third_party")
def test_installed_distribution_adds_algorithms() -> None:
    factory.validate("tuner", "Lucky", {"seed": 1}, {"x": EXAMPLES["uniform"]})
    tuner = factory.create("tuner", "Lucky", seed=1)

    assert type(tuner).__name__ == "Lucky"
    assert factory.find("tuner", "Lucky").source == "user"
    with pytest.raises(ValueError, match="'choice' is not supported by Lucky"):
        factory.validate("tuner", "Lucky", {}, {"x": EXAMPLES["choice"]})


@pytest.mark.usefixtures("third_party")
def test_the_entry_says_whether_an_assessor_may_stop_the_trials() -> None:
    taken = {name: factory.takes_assessor(name) for name in ("Lucky", "Alone", "PBTTuner", "TPE")}

    assert taken == {"Lucky": True, "Alone": False, "PBTTuner": False, "TPE": True}
    assert factory.takes_assessor("no such tuner"), "`validate` refuses it"


@pytest.mark.usefixtures("third_party")
def test_built_in_name_cannot_be_taken_over() -> None:
    assert factory.find("tuner", "TPE").source == "nni"


@pytest.mark.usefixtures("third_party")
def test_missing_dependency_names_the_extra() -> None:
    with pytest.raises(ImportError, match=r"pip install 'nni\[broken\]'"):
        factory.create("tuner", "Broken")


def test_advisor_base_is_a_kind_of_algorithm() -> None:
    name = "nni.runtime.msg_dispatcher_base.MsgDispatcherBase"

    assert isinstance(factory.create_custom("advisor", name), MsgDispatcherBase)


PRIOR = {"x": {"_type": "randint", "_value": [0, 4], "_prior": {"value": 1}}}
TAKES_ANY_SPACE = {"NetworkMorphism"}


@pytest.mark.parametrize(
    "entry",
    [one for one in factory.algorithms() if one.kind != "assessor" and one.source == "nni"],
    ids=lambda one: one.name,
)
def test_user_priors_are_refused_by_every_algorithm_that_does_not_declare_them(
    entry: factory.AlgorithmEntry,
) -> None:
    space = PRIOR
    if entry.name == "BatchTuner":
        space = {"combine_params": {**BATCH["combine_params"], "_prior": {"value": {"x": 1}}}}
    if entry.priors or entry.name in TAKES_ANY_SPACE:
        factory.validate(entry.kind, entry.name, search_space=space)
        return

    with pytest.raises(ValueError, match="_prior is not supported"):
        factory.validate(entry.kind, entry.name, search_space=space)


@pytest.mark.parametrize("name", ["Anneal", "CmaEs", "Evolution", "GridSearch", "MetisTuner"])
def test_tuner_itself_refuses_user_priors(name: str) -> None:
    tuner = factory.create("tuner", name)

    with pytest.raises(ValueError, match=f"_prior is not supported by {name}, .*use one of auto"):
        tuner.update_search_space(PRIOR)
