"""Table of all REST routes: parameters, body, handler, response and access rule of each."""

from __future__ import annotations

from typing import Final

from nni_wire.limits import SEARCH_SPACE_LIMIT_BYTES
from svc_common.access.permissions import CHANGES, READS
from svc_manager.web.handlers import (
    analyses,
    events,
    experiments,
    files,
    remarks,
    tensorboards,
    trial_output,
    trials,
)
from svc_manager.web.records.schemas import ANY, INTEGER, TEXT, array, component, record
from svc_manager.web.route import QueryParameter, Route, Scope

_LIMIT: Final = QueryParameter(
    "limit", "Maximum number of items per page; `Link` names the next page.", int, 1, 10_000
)
_CURSOR: Final = QueryParameter("cursor", "Page to return, as in the `Link` of the previous page.")
_PAGING: Final = (_LIMIT, _CURSOR)
_METRIC_TYPE: Final = QueryParameter(
    "type", "Only metrics of this type.", choices=tuple(trials.METRIC_TYPES)
)
_LOG_PARAMETERS: Final = (
    QueryParameter("offset", "Offset of the first byte.", int, 0, 2**53),
    QueryParameter("follow", "Continue while the log grows.", bool),
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
_REMARKS: Final = record({}, {"note": TEXT, "tags": array(TEXT), "starred": {"type": "boolean"}})
"""Fields that are absent stay as they are."""
_BULK_BYTES: Final = SEARCH_SPACE_LIMIT_BYTES + 1_000_000
"""Body limit of routes that carry a search space: the largest one, and 1 MB for the rest."""

ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "GET",
        "/version",
        experiments.version,
        "Version of NNI, incompatible agents, experiment of this listener, gRPC address",
        component("Version"),
        rule=READS,
        scope=Scope.INSTALLATION,
    ),
    Route(
        "GET",
        "/session",
        experiments.session,
        "Whether the caller may change experiments",
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
        query=(QueryParameter("all", "False: without stopped experiments.", bool),),
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
            QueryParameter("port", "Port of the experiment's own listener.", int, 1, 65_535),
            QueryParameter("url_prefix", "Path prefix of that listener."),
        ),
        body=_CONFIG,
        body_limit_bytes=_BULK_BYTES,
    ),
    Route(
        "GET",
        "/check-status",
        experiments.check_status,
        "State, errors and reason for waiting",
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
            QueryParameter(
                "update_type",
                "Field to change; its value is in `params` of the body.",
                choices=tuple(experiments.UPDATES),
            ),
        ),
        body={"type": "object", "properties": {"params": {"type": "object"}}},
        body_limit_bytes=_BULK_BYTES,
    ),
    Route(
        "POST",
        "/experiment/stop",
        experiments.stop,
        "Stop the experiment and cancel its live trials",
        component("Status"),
        rule=CHANGES,
        body=record({}),
    ),
    Route(
        "POST",
        "/experiment/resume",
        experiments.resume,
        "Resume the stopped experiment",
        component("Created"),
        rule=CHANGES,
        body=record({}, {"port": INTEGER}),
    ),
    Route(
        "POST",
        "/experiment/again",
        experiments.run_again,
        "Create a new experiment with the configuration of this one",
        component("Created"),
        rule=CHANGES,
        body=record({}, {"newSeed": {"type": "boolean"}}),
    ),
    Route(
        "DELETE",
        "/experiment",
        experiments.delete,
        "Delete the stopped experiment with all its data",
        record({"remainingFolders": INTEGER}),
        rule=CHANGES,
    ),
    Route(
        "PUT",
        "/experiment/remarks",
        remarks.change_experiment_remarks,
        "Change note, tags or star of the experiment",
        component("Remarks"),
        rule=CHANGES,
        body=_REMARKS,
    ),
    Route(
        "PUT",
        "/trial-jobs/{trial_id}/remarks",
        remarks.change_trial_remarks,
        "Change note, tags or star of a trial",
        component("Remarks"),
        rule=CHANGES,
        body=_REMARKS,
    ),
    Route(
        "POST",
        "/experiment/import-data",
        experiments.import_data,
        "Import samples into the algorithm",
        record({"warnings": array(TEXT)}),
        rule=CHANGES,
        body=_SAMPLES,
        body_limit_bytes=_BULK_BYTES,
    ),
    Route(
        "GET",
        "/export-data",
        experiments.export_data,
        "Parameters and results of the trials with a result",
        array(component("ExportedTrial")),
        rule=READS,
        query=(*_PAGING, QueryParameter("intermediate", "Include intermediate results.", bool)),
    ),
    Route(
        "GET",
        "/experiment-metadata",
        experiments.experiment_metadata,
        "Metadata of this experiment, as in the list of experiments",
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
        "Trials: all of them, or one page",
        array(component("Trial")),
        rule=READS,
        query=(
            *_PAGING,
            QueryParameter("status", "Only trials in these states, separated by commas."),
            QueryParameter(
                "ids", "Only trials with these ids, separated by commas; without paging."
            ),
            QueryParameter("id_prefix", "Only trials whose id starts with this."),
            QueryParameter("with_result", "Only trials with a final result.", bool),
            QueryParameter("order", "Sort key.", choices=tuple(trials.ORDERS)),
            QueryParameter("descending", "Largest first.", bool),
        ),
    ),
    Route(
        "POST",
        "/trial-jobs",
        trials.add_trial,
        "Queue a trial with parameters of the user",
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
        "Output of a trial as server-sent events; `end` is the last one",
        TEXT,
        rule=READS,
        query=(
            QueryParameter("stream", "Output stream.", choices=tuple(trial_output.STREAMS)),
            QueryParameter("offset", "Offset of the first byte.", int, 0, 2**53),
            QueryParameter("follow", "Continue until the trial ends; the default.", bool),
        ),
        media_type=events.EVENT_STREAM_TYPE,
    ),
    Route(
        "GET",
        "/trials/{trial_id}/why",
        trials.explain_trial,
        "Explanation of a trial's state: why it waits, was stopped or failed",
        component("Explanation"),
        rule=READS,
    ),
    Route(
        "GET",
        "/why",
        trials.explain_next,
        "Explanation why the next trial was not created yet",
        component("Explanation"),
        rule=READS,
    ),
    Route(
        "GET",
        "/importance",
        analyses.importance,
        "Share of a metric's variance that each hyperparameter explains",
        component("Importance"),
        rule=READS,
        query=(QueryParameter("metric", "Name of the metric; default: the first objective's."),),
    ),
    Route(
        "GET",
        "/pareto",
        analyses.pareto,
        "Pareto front: the trials that no other trial dominates",
        component("ParetoFront"),
        rule=READS,
        query=(
            QueryParameter(
                "objectives",
                "`metric:mode`, separated by commas; default: those of the configuration.",
            ),
        ),
    ),
    Route(
        "GET",
        "/metric-data",
        trials.metric_data,
        "Metrics of all trials",
        array(component("Metric")),
        rule=READS,
        query=(*_PAGING, _METRIC_TYPE),
    ),
    Route(
        "GET",
        "/metric-data/{trial_id}",
        trials.trial_metric_data,
        "Metrics of one trial",
        array(component("Metric")),
        rule=READS,
        query=(*_PAGING, _METRIC_TYPE),
    ),
    Route(
        "GET",
        "/metric-data-latest",
        trials.latest_metric_data,
        "Final and latest intermediate result of each trial",
        array(component("Metric")),
        rule=READS,
    ),
    Route(
        "GET",
        "/intermediate-ranges",
        trials.intermediate_ranges,
        "Smallest and largest intermediate number of each metric, by trial",
        array(component("IntermediateRanges")),
        rule=READS,
    ),
    Route(
        "GET",
        "/metric-data-range/{first}/{last}",
        trials.metric_data_range,
        "Metrics of the trials with sequence ids from first to last",
        array(component("Metric")),
        rule=READS,
        query=(_METRIC_TYPE,),
    ),
    Route(
        "GET",
        "/trial-file/{trial_id}/{name}",
        files.get_trial_file,
        "File of a trial: trial.log, stdout, stderr, model.onnx and others",
        TEXT,
        rule=READS,
        query=_LOG_PARAMETERS,
        media_type="text/plain",
    ),
    Route(
        "GET",
        "/logs/{name}",
        files.get_log,
        "Log of the manager (nnimanager.log) or the dispatcher (dispatcher.log)",
        TEXT,
        rule=READS,
        query=_LOG_PARAMETERS,
        media_type="text/plain",
    ),
    Route(
        "POST",
        "/tensorboard",
        tensorboards.start_tensorboard,
        "Start a TensorBoard over selected trials",
        component("TensorBoard"),
        rule=CHANGES,
        body={"type": "object", "required": ["trials"], "properties": {"trials": array(TEXT)}},
    ),
    Route(
        "GET",
        "/tensorboard-tasks",
        tensorboards.list_tensorboards,
        "Running TensorBoards of this experiment",
        array(component("TensorBoard")),
        rule=READS,
    ),
    Route(
        "DELETE",
        "/tensorboard-tasks",
        tensorboards.stop_tensorboards,
        "Stop all TensorBoards of this experiment",
        array(component("TensorBoard")),
        rule=CHANGES,
    ),
    Route(
        "DELETE",
        "/tensorboard-tasks/{task_id}",
        tensorboards.stop_tensorboard,
        "Stop one TensorBoard",
        component("TensorBoard"),
        rule=CHANGES,
    ),
    Route(
        "GET",
        "/events",
        events.follow_events,
        "Event log of the experiment as server-sent events",
        TEXT,
        rule=READS,
        query=(
            QueryParameter("after", "Id of the last event already received, or `latest`."),
            QueryParameter("follow", "Continue with later events; the default.", bool),
        ),
        media_type=events.EVENT_STREAM_TYPE,
    ),
)
