"""Table of import paths, and the modules that are written from it."""

from nni.algorithms.hpo.random_tuner import RandomTuner
from nni.algorithms.hpo.tpe_tuner import TpeArguments, TpeTuner
from nni.hpo import RandomTuner as Random
from nni.hpo import TPETuner
from nni.hpo.registry.factory import create_custom
from nni.spellings import SPELLINGS, exported_name, module_source


def test_exported_name_is_the_new_one_of_a_renamed_class() -> None:
    assert exported_name("home:Name") == "Name"
    assert exported_name("home:Name as Other") == "Other"


def test_source_of_a_module_exports_its_row() -> None:
    namespace: dict[str, object] = {}

    exec(module_source("nni.algorithms.hpo.tpe_tuner"), namespace)

    assert namespace["__all__"] == ["TpeArguments", "TpeTuner"]
    assert namespace["TpeTuner"] is TPETuner


def test_class_paths_of_nni_3_give_our_classes() -> None:
    assert TpeTuner is TPETuner
    assert RandomTuner is Random
    assert TpeArguments(gamma=0.5).gamma == 0.5
    assert "nni.algorithms.hpo.random_tuner" in SPELLINGS


def test_class_path_of_nni_3_is_a_class_name_of_a_configuration() -> None:
    arguments = {"optimize_mode": "maximize", "seed": 1, "tpe_args": {"gamma": 0.5}}

    tuner = create_custom("tuner", "nni.algorithms.hpo.tpe_tuner.TpeTuner", arguments)

    assert isinstance(tuner, TPETuner)
