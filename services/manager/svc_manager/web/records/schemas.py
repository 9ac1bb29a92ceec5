"""JSON schemas of REST requests and responses, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

from svc_common.experiment_events.causes import EndCause, LossCause, StopCause, WaitCause

Schema = Mapping[str, Any]
"""A JSON schema, as OpenAPI 3.1 writes it."""

TEXT: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
MILLISECONDS: Final[Schema] = {
    "type": "integer",
    "description": "Milliseconds since 1970-01-01 (UTC).",
}
ANY: Final[Schema] = {
    "description": "Any JSON value; NaN and the infinities are strings: NaN, Infinity, -Infinity."
}
ERROR: Final[Schema] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string", "description": "The problem and its remedy."},
        "facts": {"type": "object", "additionalProperties": TEXT},
    },
}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """Return the OpenAPI schema of an object with required and optional fields."""
    return {
        "type": "object",
        "required": list(required),
        "properties": required | (optional or {}),
    }


def array(items: Schema) -> Schema:
    """Return the schema of a list of ``items``."""
    return {"type": "array", "items": items}


def component(name: str) -> Schema:
    """Return a reference to one of `COMPONENTS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def _causes(members: type[IntEnum]) -> Schema:
    """Return the schema of a text that is the name of one of an enum's members."""
    return {"type": "string", "enum": [member.name for member in members]}


_EXPERIMENT_STATE: Final[Schema] = {
    "type": "string",
    "enum": [
        "INITIALIZED", "RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL", "DONE", "ERROR",
        "STOPPING", "STOPPED", "VIEWED",
    ],
}  # fmt: skip
TRIAL_STATES: Final = (
    "WAITING", "RUNNING", "SUCCEEDED", "FAILED", "USER_CANCELED", "SYS_CANCELED",
    "EARLY_STOPPED", "UNKNOWN",
)  # fmt: skip

COMPONENTS: Final[dict[str, Any]] = {
    "Error": ERROR,
    "Version": record(
        {
            "version": TEXT,
            "experimentId": TEXT,
            "grpc": TEXT,
            "otherVersions": {
                "type": "object",
                "additionalProperties": TEXT,
                "description": "Incompatible versions of agents, by agent id.",
            },
        }
    ),
    "Status": record({"status": _EXPERIMENT_STATE, "errors": array(TEXT), "waitingFor": TEXT}),
    "Runner": record(
        {
            "id": TEXT,
            "pool": TEXT,
            "platform": {
                "type": "string",
                "description": "Empty: a person or the installation has started it.",
            },
            "state": {
                "type": "string",
                "enum": [
                    "CONNECTED",
                    "LAUNCHING",
                    "PENDING",
                    "STARTING",
                    "RUNNING",
                    "SILENT",
                    "DRAINING",
                ],
            },
            "reason": TEXT,
            "slots": {"type": "integer", "description": "Trials at once; 0: not known."},
            "hostName": TEXT,
            "trialCount": INTEGER,
            "gpuCount": INTEGER,
            "draining": {"type": "boolean"},
            "lastSeen": {"type": ["integer", "null"]},
            "version": TEXT,
            "trials": array(record({"experimentId": TEXT, "trialId": TEXT, "attempt": INTEGER})),
        }
    ),
    "PoolState": record(
        {
            "name": TEXT,
            "platforms": array(TEXT),
            "agentCounts": {"type": "object", "additionalProperties": INTEGER},
            "reason": {
                "type": "string",
                "description": "Why it does not grow, in the platform's words; empty: it does.",
            },
            "remedy": TEXT,
            "nextLaunch": {"type": ["integer", "null"]},
        }
    ),
    "Remarks": record(
        {
            "note": TEXT,
            "tags": array(TEXT),
            "starred": {"type": "boolean"},
        }
    ),
    "Profile": record(
        {
            "id": TEXT,
            "revision": INTEGER,
            "execDuration": {"type": "integer", "description": "Seconds."},
            "logDir": TEXT,
            "nextSequenceId": INTEGER,
            "params": {
                "type": "object",
                "description": "The configuration in schema v2; secrets are masked.",
            },
            "status": _EXPERIMENT_STATE,
            "optimizeMode": {"type": "string", "enum": ["minimize", "maximize"]},
            "algorithm": TEXT,
            "repeatable": {"type": "boolean"},
        },
        {
            "startTime": MILLISECONDS,
            "endTime": MILLISECONDS,
            "bestValue": ANY,
            "bestTrialId": TEXT,
            "remarks": component("Remarks"),
            "agentLimits": component("AgentLimits"),
        },
    ),
    "AgentLimits": record(
        {},
        {
            "minAgents": INTEGER,
            "maxAgents": INTEGER,
            "idleTime": TEXT,
            "maxAgentTime": TEXT,
            "maxCost": {"type": "number"},
            "costPerAgentHour": {"type": "number"},
        },
    ),
    "Metadata": record(
        {
            "id": TEXT,
            "name": TEXT,
            "port": {"type": ["integer", "null"]},
            "status": _EXPERIMENT_STATE,
            "platform": TEXT,
            "startTime": {"type": ["integer", "null"]},
            "endTime": {"type": ["integer", "string"]},
            "tag": array(TEXT),
            "pid": INTEGER,
            "webuiUrl": array(TEXT),
            "logDir": TEXT,
            "prefixUrl": {"type": ["string", "null"]},
            "trialCounts": {"type": "object", "additionalProperties": INTEGER},
            "bestValue": ANY,
            "remarks": component("Remarks"),
        }
    ),
    "Metric": record(
        {
            "timestamp": MILLISECONDS,
            "trialJobId": TEXT,
            "parameterId": TEXT,
            "type": {"type": "string", "enum": ["PERIODICAL", "FINAL"]},
            "sequence": INTEGER,
            "data": ANY,
        }
    ),
    "IntermediateRanges": record(
        {
            "trialJobId": TEXT,
            "ranges": {
                "type": "object",
                "description": "By metric: the smallest and the largest finite number.",
                "additionalProperties": array({"type": "number"}),
            },
        }
    ),
    "Trial": record(
        {
            "trialJobId": TEXT,
            "sequenceId": INTEGER,
            "status": {"type": "string", "enum": list(TRIAL_STATES)},
            "hyperParameters": {
                "type": "array",
                "items": TEXT,
                "description": "One JSON text: parameter_id, parameter_source, parameters.",
            },
            "logPath": {"type": "string", "description": "Folder with trial.log, stdout, stderr."},
            "stderrPath": TEXT,
            "attempt": INTEGER,
            "intermediateCount": INTEGER,
            "createdTime": MILLISECONDS,
        },
        {
            "startTime": MILLISECONDS,
            "endTime": MILLISECONDS,
            "finalMetricData": array(component("Metric")),
            "latestIntermediate": ANY,
            "message": TEXT,
            "endCause": _causes(EndCause),
            "stopCause": _causes(StopCause),
            "waitCause": _causes(WaitCause),
            "exitCode": INTEGER,
            "runnerId": TEXT,
            "platform": TEXT,
            "gpuIndices": array(INTEGER),
            "provenance": ANY,
            "remarks": component("Remarks"),
        },
    ),
    "FoundLines": record(
        {
            "lines": array(record({"offset": INTEGER, "text": TEXT})),
            "next": {
                "type": "integer",
                "description": "Offset at which a further search goes on.",
            },
            "complete": {
                "type": "boolean",
                "description": "False: the search ended early, by its limit or its work.",
            },
        }
    ),
    "Explanation": record(
        {
            "trialJobId": {"type": ["string", "null"]},
            "status": {"type": ["string", "null"]},
            "verdict": {
                "type": "string",
                "enum": ["NOT_CREATED", "WAITS", "RUNS", "SUCCEEDED", "STOPPED", "FAILED"],
            },
            "summary": TEXT,
            "reasons": array(record({"kind": TEXT, "text": TEXT, "remedy": TEXT})),
            "lostAttempts": array(
                record(
                    {
                        "attempt": INTEGER,
                        "runnerId": TEXT,
                        "reason": TEXT,
                        "cause": _causes(LossCause),
                        "commandFailed": {"type": "boolean"},
                    }
                )
            ),
            "stderrTail": TEXT,
            "exitCode": {"type": ["integer", "null"]},
            "signal": {"type": ["integer", "null"]},
        }
    ),
    "ExportedTrial": record(
        {"parameter": ANY, "value": ANY, "id": TEXT}, {"intermediate": array(ANY)}
    ),
    "TensorBoard": record(
        {
            "id": TEXT,
            "status": TEXT,
            "trialJobIdList": array(TEXT),
            "trialLogDirectoryList": array(TEXT),
            "pid": INTEGER,
            "port": INTEGER,
        }
    ),
    "Importance": record(
        {
            "metric": TEXT,
            "trials": {
                "type": "integer",
                "description": "Number of trials the estimate is based on.",
            },
            "parameters": array(record({"name": TEXT, "share": {"type": "number"}})),
            "interactions": {
                "type": "number",
                "description": "Share of the variance that no single parameter explains.",
            },
        }
    ),
    "ParetoFront": record(
        {
            "objectives": array(record({"metric": TEXT, "mode": TEXT})),
            "front": array(
                record(
                    {
                        "trialJobId": TEXT,
                        "sequenceId": INTEGER,
                        "values": {"type": "object"},
                        "parameters": ANY,
                    }
                )
            ),
            "trials": {"type": "integer", "description": "Number of trials with a result."},
            "infeasible": {
                "type": "integer",
                "description": "Number of trials that violate a constraint.",
            },
            "incomplete": {
                "type": "integer",
                "description": "Number of trials without a value of an objective.",
            },
        }
    ),
    "Counts": {"type": "object", "additionalProperties": INTEGER},
    "Created": record({"experiment_id": TEXT, "urls": array(TEXT), "warnings": array(TEXT)}),
}
