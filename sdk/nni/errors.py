"""Errors that the library raises and that a caller can act on.

```
NniError
├── NoMoreTrialError    a tuner has nothing left to propose
└── TrialPruned         an objective ends its trial early
```

Wrong arguments are `ValueError` or `TypeError`, as everywhere in Python.
"""


class NniError(Exception):
    """Base of all errors that are particular to this library."""


class NoMoreTrialError(NniError):
    """Error: a tuner has exhausted its search space, or a stopping rule has ended the search.

    Raised by `Tuner.generate_parameters` and `Study.ask`; running trials continue.

    Examples:
        >>> from nni.hpo import NoMoreTrialError, Study
        >>> study = Study({"x": {"_type": "choice", "_value": [1]}}, tuner="GridSearch")
        >>> study.ask().parameters
        {'x': 1}
        >>> try:
        ...     study.ask()
        ... except NoMoreTrialError as error:
        ...     print(error)
        the search space is exhausted
    """


class TrialPruned(NniError):
    """Raised by an objective to end its trial early: it counts as EARLY_STOPPED, without a result.

    Examples:
        >>> from nni.hpo import TrialPruned, optimize
        >>> def objective(parameters):
        ...     if parameters["x"] > 1:
        ...         raise TrialPruned
        ...     return parameters["x"]
        >>> space = {"x": {"_type": "choice", "_value": [1, 2]}}
        >>> found = optimize(objective, space, tuner="GridSearch")
        >>> [trial.status for trial in found.trials]
        ['SUCCEEDED', 'EARLY_STOPPED']
    """
