from nni_proto.experiment.v1 import config_pb2
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import cause_pb2
from nni_wire.values import from_value, to_value
from svc_common.experiment_events.causes import StopCause, StopReason
from svc_manager.converters.scalars import settings_of
from svc_manager.converters.tasks import (
    drain_to_bytes,
    drop_to_bytes,
    forget_to_bytes,
    spec_of,
    stop_to_bytes,
    task_of,
)
from svc_manager.domain.checkpoints import TrialCheckpoint
from svc_manager.domain.effects import SendDrop, SendStop
from svc_manager.domain.state import Experiment
from tests.unit.services.manager.building import EXPERIMENT_ID, Lab


def experiment(**fields: object) -> Experiment:
    config = config_pb2.ExperimentConfig(
        trial_command="python3 trial.py",
        trial_code_directory="/code",
        **fields,  # type: ignore[arg-type] # any field
    )
    return Experiment(
        id=EXPERIMENT_ID,
        config=config.SerializeToString(),
        directory="/root/e",
        environment_sha256="ab",
    )


def control(payload: bytes) -> task_pb2.RunnerControl:
    return task_pb2.RunnerControl.FromString(payload)


def test_agents_on_shared_folders_get_folder_and_environment() -> None:
    spec = spec_of(experiment(trial_gpu_number=2))

    assert (spec.command, spec.code_directory) == ("python3 trial.py", "/code")
    assert spec.environment_file == "/root/e/environment.json"
    assert spec.gpu_number == 2
    assert not spec.checkpoints_travel


def test_a_moved_code_folder_replaces_the_configured_one() -> None:
    moved = experiment()
    moved.code_directory = "/elsewhere"

    assert spec_of(moved).code_directory == "/elsewhere"


def test_agents_with_an_archive_get_no_folder_of_this_machine() -> None:
    archived = experiment()
    config = config_pb2.ExperimentConfig.FromString(archived.config)
    config.code_archive.sha256 = "ab" * 32
    archived.config = config.SerializeToString()

    spec = spec_of(archived, bytes_travel=True)

    assert spec.code_archive.sha256 == "ab" * 32
    assert spec.outputs_travel
    assert spec.checkpoints_travel
    assert (spec.experiment_directory, spec.environment_file) == ("", "")


def test_outputs_stay_in_a_shared_storage() -> None:
    shared = experiment()
    config = config_pb2.ExperimentConfig.FromString(shared.config)
    config.code_archive.sha256 = "ab" * 32
    section = {
        "storageType": "NFS",
        "localMountPoint": "/mnt/here",
        "remoteMountPoint": "data",
        "localMounted": "usermount",
        "nfsServer": "10.0.0.9",
        "exportedDirectory": "/data",
    }
    config.training_services.add(platform="remote", options=to_value({"sharedStorage": section}))
    shared.config = config.SerializeToString()

    spec = spec_of(shared, bytes_travel=True)

    assert not spec.outputs_travel
    assert spec.experiment_directory == ""


def test_a_task_is_of_the_current_attempt() -> None:
    lab = Lab()
    trial = lab.waiting()
    trial.attempt = 3

    task = task_of(EXPERIMENT_ID, trial, task_pb2.TrialSpec(command="x"), 17)

    assert (task.trial_id, task.attempt, task.log_sequence) == (trial.id, 3, 17)
    assert (task.parameter_source, task.spec.command) == ("algorithm", "x")
    assert from_value(task.parameters) == {"x": trial.parameter_id}
    assert from_value(task.provenance) == {"by": "test"}


def test_orders_carry_their_facts_and_the_position_of_the_sender() -> None:
    stop = control(stop_to_bytes("e1", SendStop("r1", "t1", 2, StopReason(StopCause.USER)), 5))
    drop = control(drop_to_bytes("e1", SendDrop("r1", "t1", 2, "c1"), 6))
    forget = control(forget_to_bytes("e1", 7))

    assert (stop.stop_trial.attempt, stop.stop_trial.reason) == (2, "killed by the user")
    assert stop.stop_trial.stop.cause == cause_pb2.STOP_CAUSE_USER
    assert (drop.drop_trial.trial_id, drop.drop_trial.claim_id) == ("t1", "c1")
    assert forget.forget_experiment.experiment_id == "e1"
    assert [one.log_sequence for one in (stop, drop, forget)] == [5, 6, 7]


def test_a_drain_concerns_no_experiment() -> None:
    assert control(drain_to_bytes()).HasField("drain_runner")


def test_checkpoints_of_a_compression_job_travel_on_shared_folders_too() -> None:
    job = config_pb2.CompressionConfig()

    assert spec_of(experiment(compression=job)).checkpoints_travel


def test_agents_of_another_platform_get_no_folder_and_no_options_of_it() -> None:
    elsewhere = experiment()
    config = config_pb2.ExperimentConfig.FromString(elsewhere.config)
    config.code_archive.sha256 = "ab" * 32
    service = config.training_services.add(platform="elsewhere")
    service.options.CopyFrom(to_value({"machineList": []}))
    elsewhere.config = config.SerializeToString()
    elsewhere.settings = settings_of(EXPERIMENT_ID, config, 0)

    spec = spec_of(elsewhere)

    assert spec.outputs_travel
    assert spec.checkpoints_travel
    assert (spec.experiment_directory, spec.environment_file) == ("", "")
    assert spec.platform == "elsewhere"
    assert not spec.HasField("platform_options")


def test_tasks_of_several_platforms_name_none() -> None:
    mixed = experiment()
    config = config_pb2.ExperimentConfig.FromString(mixed.config)
    config.training_services.add(platform="local")
    config.training_services.add(platform="elsewhere")
    mixed.config = config.SerializeToString()
    mixed.settings = settings_of(EXPERIMENT_ID, config, 0)

    assert spec_of(mixed).platform == ""


def test_the_next_attempt_goes_on_from_the_stored_checkpoint() -> None:
    lab = Lab()
    trial = lab.running()
    trial.checkpoint = TrialCheckpoint(40, 1, 3, "ab" * 32, 9)

    task = task_of(EXPERIMENT_ID, trial, task_pb2.TrialSpec(), 1)

    found = task.resume_from
    assert (found.step, found.attempt, found.number) == (40, 1, 3)
    assert (found.archive.sha256, found.archive.size_bytes) == ("ab" * 32, 9)


def test_a_checkpoint_in_a_shared_folder_needs_no_word_in_the_task() -> None:
    lab = Lab()
    trial = lab.running()
    trial.checkpoint = TrialCheckpoint(40, 1, 3)

    assert not task_of(EXPERIMENT_ID, trial, task_pb2.TrialSpec(), 1).HasField("resume_from")
