"""Functions of NNI 2.x on the engine of the running search."""

from nni.retiarii.execution.api import (
    budget_exhausted,
    get_and_register_default_listener,
    get_execution_engine,
    is_stopped_exec,
    list_models,
    query_available_resources,
    set_execution_engine,
    submit_models,
    wait_models,
)

__all__ = [
    "budget_exhausted",
    "get_and_register_default_listener",
    "get_execution_engine",
    "is_stopped_exec",
    "list_models",
    "query_available_resources",
    "set_execution_engine",
    "submit_models",
    "wait_models",
]
