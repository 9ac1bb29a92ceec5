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
    """A tuner has explored its whole search space and proposes nothing more.

    Raised by `Tuner.generate_parameters`; trials that run go on to their end.
    """
