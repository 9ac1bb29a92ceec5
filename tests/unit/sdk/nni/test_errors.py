import pytest

from nni.annotation import AnnotationError
from nni.errors import NniError, NoMoreTrialError
from nni.experiment.errors import ExperimentError


@pytest.mark.parametrize("error", [NoMoreTrialError, AnnotationError, ExperimentError])
def test_error_of_the_library_has_one_base(error: type[Exception]) -> None:
    assert issubclass(error, NniError)
    assert issubclass(NniError, Exception)
