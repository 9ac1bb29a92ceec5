"""Names that NNI 2.x and 3.0 document: each is accepted, or refused with the name to use."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest
import typer

import nni
from nni.cli.app import app
from nni.experiment import Experiment, RunMode
from nni.experiment.config import (
    AlgorithmConfig,
    AzureBlobConfig,
    ExperimentConfig,
    NfsConfig,
    RemoteMachineConfig,
)
from nni.experiment.config.base import ConfigModel
from nni.experiment.config.training_services import PLATFORMS
from nni.experiment.errors import ConfigError
from nni.hpo.registry import factory

FIELDS: dict[type[ConfigModel], str] = {
    ExperimentConfig: (
        "experimentName searchSpaceFile searchSpace trialCommand trialCodeDirectory "
        "trialConcurrency trialGpuNumber maxExperimentDuration maxTrialNumber maxTrialDuration "
        "nniManagerIp useAnnotation debug logLevel experimentWorkingDirectory tunerGpuIndices "
        "tuner assessor advisor trainingService sharedStorage"
    ),
    AlgorithmConfig: "name className codeDirectory classArgs",
    PLATFORMS["local"]: "platform useActiveGpu maxTrialNumberPerGpu gpuIndices",
    PLATFORMS["remote"]: "platform machineList reuseMode",
    RemoteMachineConfig: (
        "host port user password sshKeyFile sshPassphrase useActiveGpu maxTrialNumberPerGpu "
        "gpuIndices pythonPath"
    ),
    PLATFORMS["openpai"]: (
        "platform host username token trialCpuNumber trialMemorySize storageConfigName "
        "dockerImage virtualCluster localStorageMountPoint containerStorageMountPoint reuseMode "
        "openpaiConfig openpaiConfigFile"
    ),
    PLATFORMS["aml"]: (
        "platform dockerImage subscriptionId resourceGroup workspaceName computeTarget "
        "maxTrialNumberPerGpu useActiveGpu"
    ),
    PLATFORMS["dlc"]: (
        "platform type image jobType podCount ecsSpec region nasDataSourceId accessKeyId "
        "accessKeySecret localStorageMountPoint containerStorageMountPoint"
    ),
    PLATFORMS["kubeflow"]: "platform reuseMode operator apiVersion storage worker ps master",
    PLATFORMS["frameworkcontroller"]: (
        "platform reuseMode taskRoles storage serviceAccountName namespace configPath"
    ),
    PLATFORMS["adl"]: "platform namespace adaptive imagePullSecrets checkpoint storage reuseMode",
    NfsConfig: (
        "storageType localMountPoint remoteMountPoint localMounted nfsServer exportedDirectory"
    ),
    AzureBlobConfig: (
        "storageType localMountPoint remoteMountPoint localMounted storageAccountName "
        "storageAccountKey containerName resourceGroupName"
    ),
}
"""Fields of schema v2, by section."""

ALGORITHMS: list[tuple[factory.Kind, str, str, str, dict[str, Any]]] = [
    (
        "tuner",
        "TPE",
        "hyperopt_tuner.HyperoptTuner",
        "tpe_tuner.TpeTuner",
        {
            "optimize_mode": "maximize",
            "parallel_optimize": True,
            "constant_liar_type": "mean",
        },
    ),
    (
        "tuner",
        "TPE",
        "",
        "",
        {
            "optimize_mode": "minimize",
            "seed": 12345,
            "tpe_args": {
                "constant_liar_type": "mean",
                "n_startup_jobs": 10,
                "n_ei_candidates": 20,
                "linear_forgetting": 100,
                "prior_weight": 0,
                "gamma": 0.5,
            },
        },
    ),
    ("tuner", "Random", "", "", {"seed": 100}),
    (
        "tuner",
        "PBT",
        "",
        "",
        {
            "optimize_mode": "maximize",
            "all_checkpoint_dir": "/checkpoints",
            "population_size": 10,
            "factor": 0.2,
            "resample_probability": 0.25,
            "fraction": 0.2,
        },
    ),
    (
        "tuner",
        "Random",
        "hyperopt_tuner.HyperoptTuner",
        "random_tuner.RandomTuner",
        {"optimize_mode": "maximize"},
    ),
    ("tuner", "Anneal", "hyperopt_tuner.HyperoptTuner", "", {"optimize_mode": "minimize"}),
    (
        "tuner",
        "Evolution",
        "evolution_tuner.EvolutionTuner",
        "",
        {"optimize_mode": "maximize", "population_size": 20},
    ),
    (
        "tuner",
        "SMAC",
        "smac_tuner.SMACTuner",
        "",
        {"optimize_mode": "maximize", "config_dedup": True},
    ),
    ("tuner", "BatchTuner", "batch_tuner.BatchTuner", "", {}),
    ("tuner", "GridSearch", "gridsearch_tuner.GridSearchTuner", "", {}),
    (
        "tuner",
        "NetworkMorphism",
        "networkmorphism_tuner.NetworkMorphismTuner",
        "",
        {
            "optimize_mode": "maximize",
            "task": "cv",
            "input_width": 32,
            "input_channel": 3,
            "n_output_node": 10,
        },
    ),
    (
        "tuner",
        "MetisTuner",
        "metis_tuner.MetisTuner",
        "",
        {
            "optimize_mode": "maximize",
            "no_resampling": False,
            "no_candidates": True,
            "selection_num_starting_points": 600,
            "cold_start_num": 10,
            "exploration_probability": 0.9,
        },
    ),
    (
        "tuner",
        "GPTuner",
        "gp_tuner.GPTuner",
        "",
        {
            "optimize_mode": "maximize",
            "utility": "ucb",
            "kappa": 5.0,
            "xi": 0.0,
            "nu": 2.5,
            "alpha": 1e-6,
            "cold_start_num": 10,
            "selection_num_warm_up": 100000,
            "selection_num_starting_points": 250,
        },
    ),
    (
        "tuner",
        "PBTTuner",
        "pbt_tuner.PBTTuner",
        "",
        {
            "optimize_mode": "maximize",
            "all_checkpoint_dir": "/checkpoints",
            "population_size": 10,
            "factors": [1.2, 0.8],
            "fraction": 0.2,
        },
    ),
    (
        "tuner",
        "DNGOTuner",
        "dngo_tuner.DNGOTuner",
        "",
        {
            "optimize_mode": "maximize",
            "sample_size": 1000,
            "trials_per_update": 20,
            "num_epochs_per_training": 500,
        },
    ),
    (
        "assessor",
        "Medianstop",
        "medianstop_assessor.MedianstopAssessor",
        "",
        {"optimize_mode": "maximize", "start_step": 5},
    ),
    (
        "assessor",
        "Curvefitting",
        "curvefitting_assessor.CurvefittingAssessor",
        "",
        {"epoch_num": 20, "start_step": 6, "threshold": 0.95, "gap": 1},
    ),
    (
        "advisor",
        "Hyperband",
        "hyperband_advisor.Hyperband",
        "",
        {"optimize_mode": "maximize", "R": 60, "eta": 3, "exec_mode": "serial"},
    ),
    (
        "advisor",
        "BOHB",
        "bohb_advisor.BOHB",
        "",
        {
            "optimize_mode": "maximize",
            "min_budget": 1,
            "max_budget": 3,
            "eta": 3,
            "min_points_in_model": 5,
            "top_n_percent": 15,
            "num_samples": 64,
            "random_fraction": 0.33,
            "bandwidth_factor": 3.0,
            "min_bandwidth": 0.001,
        },
    ),
]
"""Kind, name, documented classes below `nni.algorithms.hpo`, and arguments."""

ANNOTATIONS = ("function_choice", "lognormal", "qlognormal", "randint", "variable")
"""Names after `nni.` in annotations."""

METHODS = {
    "start": "port debug run_mode",
    "run": "port wait_completion debug",
    "stop": "",
    "connect": "port",
    "resume": "experiment_id port wait_completion debug",
    "view": "experiment_id port wait_completion non_blocking",
    "get_status": "",
    "get_experiment_profile": "",
    "export_data": "",
    "get_job_metrics": "trial_job_id",
    "get_trial_job": "trial_job_id",
    "list_trial_jobs": "",
    "get_job_statistics": "",
    "update_max_trial_number": "value",
    "update_trial_concurrency": "value",
    "update_max_experiment_duration": "value",
    "update_search_space": "value",
    "run_or_resume": "port wait_completion debug",
    "has_checkpoint": "",
    "get_all_experiments_metadata": "",
    "get_experiment_metadata": "experiment_id",
}
"""Methods of `Experiment`, and their arguments."""

COMMANDS = """
create --config -c --port -p --debug -d --foreground -f --url_prefix -u
resume --port -p --debug -d --foreground -f --experiment_dir -e
view --port -p --experiment_dir -e --foreground -f
stop --port -p --all -a
update searchspace --filename -f
update concurrency --value -v
update duration --value -v
update trialnum --value -v
trial ls --head --tail
trial kill --trial_id -T
top --time -t
experiment show
experiment status
experiment list --all
experiment delete --all
experiment export --filename -f --type -t --intermediate -i
experiment import --filename -f
experiment save --path -p --saveCodeDir -s
experiment load --path -p --codeDir -c --logDir -l --searchSpacePath -s
config show
log stdout --head -h -H --tail -t -T --path -p
log stderr --head -h -H --tail -t -T --path -p
log trial --trial_id -T
webui url
algo register --meta -m --meta_path
algo show
algo list
algo unregister
algo unreg
ss_gen --trial_command -t --trial_dir -d --file -f
""".strip().splitlines()
"""Commands of `nnictl`, and their options."""


@pytest.mark.parametrize("section", FIELDS, ids=lambda section: section.__name__)
def test_every_field_of_schema_v2_is_known_in_both_spellings(section: type[ConfigModel]) -> None:
    for field in FIELDS[section].split():
        name = section.field_of(field)

        assert name in section.model_fields, field
        assert section.model_fields[name].alias == field


@pytest.mark.parametrize(
    ("kind", "name", "_second", "_third", "arguments"), ALGORITHMS, ids=[a[1] for a in ALGORITHMS]
)
def test_every_documented_argument_is_taken(
    kind: factory.Kind, name: str, _second: str, _third: str, arguments: dict[str, Any]
) -> None:
    known = factory.argument_names(factory.find(kind, name))

    factory.validate(kind, name, arguments)
    assert set(arguments) <= set(known)


@pytest.mark.parametrize(
    ("kind", "path"),
    [(kind, path) for kind, _, *paths, _ in ALGORITHMS for path in paths if path],
)
def test_every_documented_class_can_be_named(kind: factory.Kind, path: str) -> None:
    assert factory.custom_class(kind, f"nni.algorithms.hpo.{path}")


@pytest.mark.parametrize(
    ("class_name", "remedy"),
    [
        ("nni.batch_tuner.batch_tuner.BatchTuner", "name: BatchTuner"),
        ("nni.bohb_advisor.bohb_advisor.BOHB", "name: BOHB"),
        ("nni.curvefitting_assessor.curvefitting_assessor.CurvefittingAssessor", "Curvefitting"),
        ("nni.evolution_tuner.evolution_tuner.EvolutionTuner", "name: Evolution"),
        ("nni.gp_tuner.gp_tuner.GPTuner", "name: GPTuner"),
        ("nni.gridsearch_tuner.gridsearch_tuner.GridSearchTuner", "name: GridSearch"),
        ("nni.hyperband_advisor.hyperband_advisor.Hyperband", "name: Hyperband"),
        ("nni.hyperopt_tuner.hyperopt_tuner.HyperoptTuner", "hyperopt_tuner.HyperoptTuner"),
        ("nni.medianstop_assessor.medianstop_assessor.MedianstopAssessor", "name: Medianstop"),
        ("nni.metis_tuner.metis_tuner.MetisTuner", "name: MetisTuner"),
        ("nni.pbt_tuner.pbt_tuner.PBTTuner", "name: PBTTuner"),
        ("nni.smac_tuner.smac_tuner.SMACTuner", "name: SMAC"),
        ("nni.ppo_tuner.ppo_tuner.PPOTuner", "use 'auto' or 'TPE'"),
        ("nni.algorithms.hpo.ppo_tuner.PPOTuner", "use 'auto' or 'TPE'"),
    ],
)
def test_a_class_under_a_path_of_nni_1_is_refused_with_the_name_to_use(
    class_name: str, remedy: str
) -> None:
    (problem,) = AlgorithmConfig(class_name=class_name).problems("tuner")

    assert problem.field == "tuner.className"
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("get_parameters", "nni.get_next_parameter"),
        *((name, "'''@nni.variable(nni.choice(1, 2), name=x)'''") for name in ANNOTATIONS),
    ],
)
def test_a_name_of_the_trial_api_that_is_gone_is_refused_with_a_remedy(
    name: str, remedy: str
) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(nni, name)

    assert f"no attribute {name!r}; " in str(raised.value)
    assert remedy in str(raised.value)


@pytest.mark.parametrize(
    ("platform", "remedy"),
    [
        ("dlts", "use kubeflow"),
        ("paiYarn", "use openpai"),
        ("hybrid", "a list of platforms"),
    ],
)
def test_a_platform_that_is_gone_is_refused_with_a_remedy(platform: str, remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy):
        ExperimentConfig(training_service={"platform": platform})


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_an_experiment_takes_its_documented_arguments(method: str) -> None:
    taken = inspect.signature(getattr(Experiment, method)).parameters

    assert set(METHODS[method].split()) <= set(taken)


def test_every_mode_of_running_has_its_name() -> None:
    assert {mode.name for mode in RunMode} == {"Background", "Foreground", "Detach"}


@pytest.mark.parametrize(
    "name", ["GP", "Metis", "PBT", "Batch", "DNGO", "random", "tpe", "gridsearch", "Anneal", "smac"]
)
def test_every_name_of_a_tuner_in_nni_3_is_taken(name: str) -> None:
    assert factory.find("tuner", name).kind == "tuner"


@pytest.mark.parametrize("name", ["BOHB", "Hyperband"])
def test_advisor_may_stand_under_tuner_as_in_nni_3(name: str) -> None:
    config = ExperimentConfig("local", tuner={"name": name})

    assert config.given("advisor") == AlgorithmConfig(name=name)


@pytest.mark.parametrize(
    "path",
    [
        "nni.ClassArgsValidator",
        "nni.utils.ClassArgsValidator",
        "nni.utils.merge_parameter",
        "nni.algorithms.hpo.tpe_tuner.TpeTuner",
        "nni.algorithms.hpo.random_tuner.RandomTuner",
        "nni.typehint.Parameters",
        "nni.typehint.SearchSpace",
        "nni.typehint.TrialMetric",
        "nni.typehint.TrialRecord",
    ],
)
def test_every_documented_import_of_a_tuner_is_there(path: str) -> None:
    module, _, name = path.rpartition(".")

    assert getattr(import_module(module), name)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_has_its_documented_options(line: str) -> None:
    words = [word for word in line.split() if not word.startswith("-")]
    options = {word for word in line.split() if word.startswith("-")}
    command: Any = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]

    known = {option for parameter in command.params for option in parameter.opts}

    assert options <= known
