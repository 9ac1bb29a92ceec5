"""Drive an experiment with nothing but the contracts: gRPC and `nni_proto`.

The same calls work from any language that has a protobuf compiler. Needs the services to be up:
`nnictl up`.
"""

import json
import os
import sys
import uuid
from pathlib import Path

import grpc

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.experiment.v1 import (
    config_pb2,
    experiment_service_pb2,
    experiment_service_pb2_grpc,
)

HERE = Path(__file__).resolve().parent
OVER = {"DONE", "ERROR", "STOPPED"}


def value(data):
    """Return JSON-like data as the message that keeps its types."""
    if isinstance(data, dict):
        entries = [value_pb2.MapEntry(key=key, value=value(item)) for key, item in data.items()]
        return value_pb2.Value(map_value=value_pb2.MapValue(entries=entries))
    if isinstance(data, list):
        return value_pb2.Value(list_value=value_pb2.ListValue(items=map(value, data)))
    if isinstance(data, bool):
        return value_pb2.Value(bool_value=data)
    if isinstance(data, int):
        return value_pb2.Value(int_value=data)
    if isinstance(data, float):
        return value_pb2.Value(float_value=data)
    return value_pb2.Value(string_value=data)


def numbers(message):
    """Return the plain numbers of a map, for printing."""
    return {
        entry.key: getattr(entry.value, entry.value.WhichOneof("kind"))
        for entry in message.map_value.entries
    }


def config():
    """Return what is to be tuned: two numbers of `trial.py`."""
    return config_pb2.ExperimentConfig(
        experiment_name="grpc client",
        search_space=value(
            {
                "x": {"_type": "uniform", "_value": [-5.0, 5.0]},
                "y": {"_type": "uniform", "_value": [-5.0, 5.0]},
            }
        ),
        trial_command="python3 trial.py",
        trial_code_directory=str(HERE),
        trial_concurrency=4,
        max_trial_number=20,
        experiment_working_directory=str(Path.home() / "nni-experiments"),
        tuner=config_pb2.AlgorithmConfig(
            name="TPE", class_args=value({"optimize_mode": "minimize", "seed": 0})
        ),
        training_services=[config_pb2.TrainingServiceConfig(platform="local")],
    )


def follow(service, metadata, experiment_id):
    """Print results as they come; return when the experiment has no more trials to run."""
    parameters = {}
    request = experiment_service_pb2.FollowEventsRequest(experiment_id=experiment_id, follow=True)
    for message in service.FollowEvents(request, metadata=metadata):
        event = message.event
        kind = event.WhichOneof("kind")
        if kind == "trial_scheduled":
            parameters[event.trial_scheduled.trial_id] = numbers(event.trial_scheduled.parameters)
        elif kind == "metric_reported":
            report = event.metric_reported
            if report.metric.type == metric_pb2.METRIC_TYPE_FINAL:
                result = report.metric.value.float_value
                print(f"trial {report.trial_id}: {result:.4f} at {parameters[report.trial_id]}")
        elif kind == "experiment_state_changed":
            print(f"experiment is {event.experiment_state_changed.to_state}")
            if event.experiment_state_changed.to_state in OVER:
                return


def main():
    home = Path(os.environ.get("NNI_HOME") or Path.home() / ".local/state/nni")
    try:
        endpoint = json.loads((home / "endpoint.json").read_text("utf-8"))
    except FileNotFoundError:
        sys.exit("the services are not up; start them with `nnictl up`")
    metadata = (("authorization", f"Bearer {endpoint['token']}"),)
    with grpc.insecure_channel(endpoint["grpc"]) as channel:
        service = experiment_service_pb2_grpc.ExperimentServiceStub(channel)
        created = service.CreateExperiment(
            experiment_service_pb2.CreateExperimentRequest(
                request_id=uuid.uuid4().hex,
                config=config(),
                environment=dict(os.environ),
                interpreter=sys.executable,
            ),
            metadata=metadata,
        )
        experiment_id = created.experiment.id
        print(f"created experiment {experiment_id}")
        try:
            follow(service, metadata, experiment_id)
        finally:
            stopped = service.StopExperiment(
                experiment_service_pb2.StopExperimentRequest(
                    request_id=uuid.uuid4().hex, experiment_id=experiment_id
                ),
                metadata=metadata,
            ).experiment
    print(f"best: {stopped.best_value:.4f} by trial {stopped.best_trial_id}")


if __name__ == "__main__":
    main()
