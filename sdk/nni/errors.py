"""Errors that the library raises and that a caller can act on.

```
NniError
└── NoMoreTrialError    a tuner has nothing left to propose
```

Wrong arguments are `ValueError` or `TypeError`, as everywhere in Python.
"""


class NniError(Exception):
    """Base of all errors that are particular to this library."""


class NoMoreTrialError(NniError):
    """A tuner has exhausted its search space, or a stopping rule has ended the search.

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
