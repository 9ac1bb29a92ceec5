"""Every path of REST: what a request may say, who answers it, and with what."""

from __future__ import annotations

from typing import Final

from nni_wire.limits import SEARCH_SPACE_LIMIT_BYTES
from svc_common.access.permissions import CHANGES, READS
from svc_manager.web.handlers import (
    analyses,
    events,
    experiments,
    files,
    tensorboards,
    trial_output,
    trials,
)
from svc_manager.web.records.schemas import ANY, TEXT, array, component, record
from svc_manager.web.route import Parameter, Route, Scope

_LIMIT: Final = Parameter(
    "limit", "Most items of one page; `Link` leads to the next page.", int, 1, 10_000
)
_CURSOR: Final = Parameter("cursor", "Which page: as `Link` of the page before says.")
_PAGING: Final = (_LIMIT, _CURSOR)
_METRIC_TYPE: Final = Parameter(
    "type", "Only reports of this type.", choices=tuple(trials.METRIC_TYPES)
)
_LOG_PARAMETERS: Final = (
    Parameter("offset", "First byte wanted.", int, 0, 2**53),
    Parameter("follow", "Go on as the log grows.", bool),
)
_SAMPLES: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["parameter", "value"],
        "properties": {"parameter": {"type": "object"}, "value": ANY},
    },
}
_CONFIG: Final = {
    "type": "object",
    "description": (
        "A configuration in schema v2, camelCase; paths are absolute, the search space is inline."
    ),
}
_BULK_BYTES: Final = SEARCH_SPACE_LIMIT_BYTES + 1_000_000
"""Room for the largest search space and what stands around it."""

ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "GET",
        "/version",
        experiments.version,
        "Version of NNI, agents that differ, id of this listener's experiment, address of gRPC",
        component("Version"),
        rule=READS,
        scope=Scope.INSTALLATION,
    ),
    Route(
        "GET",
        "/session",
        experiments.session,
        "Whether this client may change things",
        record({"canChange": {"type": "boolean"}}),
        rule=READS,
        scope=Scope.INSTALLATION,
    ),
    Route(
        "GET",
        "/experiments-info",
        experiments.experiments_info,
        "All experiments of this installation, newest first",
        array(component("Metadata")),
        rule=READS,
        scope=Scope.INSTALLATION,
        query=(Parameter("all", "False: only those that are not stopped.", bool),),
    ),
    Route(
        "POST",
        "/experiment",
        experiments.create,
        "Create and start an experiment",
        component("Created"),
        rule=CHANGES,
        scope=Scope.INSTALLATION,
        query=(
            Parameter("port", "Port of its own listener.", int, 1, 65_535),
            Parameter("url_prefix", "Path under which that listener serves."),
        ),
        body=_CONFIG,
        body_limit_bytes=_BULK_BYTES,
    ),
    Route(
        "GET",
        "/check-status",
        experiments.check_status,
        "State, errors, and what is waited for",
        component("Status"),
        rule=READS,
    ),
    Route(
        "GET",
        "/experiment",
        experiments.get_profile,
        "The experiment profile",
        component("Profile"),
        rule=READS,
    ),
    Route(
        "PUT",
        "/experiment",
        experiments.update,
        "Change one value of the configuration",
        component("Profile"),
        rule=CHANGES,
        query=(
            Parameter(
                "update_type",
                "Which value; it is read from `params` of the body.",
                choices=tuple(experiments.UPDATES),
            ),
        ),
        body={"type": "object", "properties": {"params": {"type": "object"}}},
        body_limit_bytes=_BULK_BYTES,
    ),
    Route(
        "POST",
        "/experiment/import-data",
        experiments.import_data,
        "Feed samples to the algorithm",
        record({"warnings": array(TEXT)}),
        rule=CHANGES,
        body=_SAMPLES,
        body_limit_bytes=_BULK_BYTES,
    ),
    Route(
        "GET",
        "/export-data",
        experiments.export_data,
        "Parameters and results of the trials that have one",
        array(component("ExportedTrial")),
        rule=READS,
        query=(*_PAGING, Parameter("intermediate", "With intermediate results.", bool)),
    ),
    Route(
        "GET",
        "/experiment-metadata",
        experiments.experiment_metadata,
        "This experiment's line of the list of experiments",
        component("Metadata"),
        rule=READS,
    ),
    Route(
        "GET",
        "/job-statistics",
        experiments.job_statistics,
        "Number of trials by state",
        component("Counts"),
        rule=READS,
    ),
    Route(
        "GET",
        "/trial-jobs",
        trials.list_trials,
        "Trials: all of them, or pages of them",
        array(component("Trial")),
        rule=READS,
        query=(
            *_PAGING,
            Parameter("status", "Only these states, separated by commas."),
            Parameter("ids", "Only these trials, separated by commas; no paging."),
            Parameter("id_prefix", "Only trials whose id starts with this."),
            Parameter("with_result", "Only trials with a final result.", bool),
            Parameter("order", "What to sort by.", choices=tuple(trials.ORDERS)),
            Parameter("descending", "Largest first.", bool),
        ),
    ),
    Route(
        "POST",
        "/trial-jobs",
        trials.add_trial,
        "Queue a trial with parameters of one's own",
        record({"parameterId": TEXT}),
        rule=CHANGES,
        body={"type": "object", "description": "The parameters."},
    ),
    Route(
        "GET",
        "/trial-jobs/{trial_id}",
        trials.get_trial,
        "One trial",
        component("Trial"),
        rule=READS,
    ),
    Route(
        "DELETE",
        "/trial-jobs/{trial_id}",
        trials.kill_trial,
        "Cancel a live trial",
        component("Trial"),
        rule=CHANGES,
    ),
    Route(
        "GET",
        "/trials/{trial_id}/log",
        trial_output.follow_output,
        "What a trial writes as server-sent events; `end` is the last one",
        TEXT,
        rule=READS,
        query=(
            Parameter("stream", "Which output.", choices=tuple(trial_output.STREAMS)),
            Parameter("offset", "First byte wanted.", int, 0, 2**53),
            Parameter("follow", "Go on until the trial has ended; the default.", bool),
        ),
        media_type=events.EVENT_STREAM_TYPE,
    ),
    Route(
        "GET",
        "/trials/{trial_id}/why",
        trials.explain_trial,
        "Why a trial waits, was stopped or failed, in words",
        component("Explanation"),
        rule=READS,
    ),
    Route(
        "GET",
        "/why",
        trials.explain_next,
        "Why the next trial does not exist yet, in words",
        component("Explanation"),
        rule=READS,
    ),
    Route(
        "GET",
        "/importance",
        analyses.importance,
        "How much of a metric's variance each hyperparameter explains",
        component("Importance"),
        rule=READS,
        query=(Parameter("metric", "Which metric; without it the first objective's."),),
    ),
    Route(
        "GET",
        "/pareto",
        analyses.pareto,
        "The trials that no other one beats in every objective",
        component("ParetoFront"),
        rule=READS,
        query=(
            Parameter(
                "objectives",
                "`metric:mode`, separated by commas; without it those of the configuration.",
            ),
        ),
    ),
    Route(
        "GET",
        "/metric-data",
        trials.metric_data,
        "Reports of all trials",
        array(component("Metric")),
        rule=READS,
        query=(*_PAGING, _METRIC_TYPE),
    ),
    Route(
        "GET",
        "/metric-data/{trial_id}",
        trials.trial_metric_data,
        "Reports of one trial",
        array(component("Metric")),
        rule=READS,
        query=(*_PAGING, _METRIC_TYPE),
    ),
    Route(
        "GET",
        "/metric-data-latest",
        trials.latest_metric_data,
        "Result and last intermediate result of each trial",
        array(component("Metric")),
        rule=READS,
    ),
    Route(
        "GET",
        "/metric-data-range/{first}/{last}",
        trials.metric_data_range,
        "Reports of the trials with sequence ids from first to last",
        array(component("Metric")),
        rule=READS,
        query=(_METRIC_TYPE,),
    ),
    Route(
        "GET",
        "/trial-file/{trial_id}/{name}",
        files.get_trial_file,
        "A file of a trial: trial.log, stdout, stderr, model.onnx, ...",
        TEXT,
        rule=READS,
        query=_LOG_PARAMETERS,
        media_type="text/plain",
    ),
    Route(
        "GET",
        "/logs/{name}",
        files.get_log,
        "nnimanager.log or dispatcher.log",
        TEXT,
        rule=READS,
        query=_LOG_PARAMETERS,
        media_type="text/plain",
    ),
    Route(
        "POST",
        "/tensorboard",
        tensorboards.start_tensorboard,
        "Start a TensorBoard over chosen trials",
        component("TensorBoard"),
        rule=CHANGES,
        body={"type": "object", "required": ["trials"], "properties": {"trials": array(TEXT)}},
    ),
    Route(
        "GET",
        "/tensorboard-tasks",
        tensorboards.list_tensorboards,
        "The TensorBoards of this experiment",
        array(component("TensorBoard")),
        rule=READS,
    ),
    Route(
        "DELETE",
        "/tensorboard-tasks",
        tensorboards.stop_tensorboards,
        "End all TensorBoards of this experiment",
        array(component("TensorBoard")),
        rule=CHANGES,
    ),
    Route(
        "DELETE",
        "/tensorboard-tasks/{task_id}",
        tensorboards.stop_tensorboard,
        "End one TensorBoard",
        component("TensorBoard"),
        rule=CHANGES,
    ),
    Route(
        "GET",
        "/events",
        events.follow_events,
        "The experiment's log as server-sent events",
        TEXT,
        rule=READS,
        query=(
            Parameter("after", "Id of the last event that is known already, or `latest`."),
            Parameter("follow", "Go on as events come; the default.", bool),
        ),
        media_type=events.EVENT_STREAM_TYPE,
    ),
)
