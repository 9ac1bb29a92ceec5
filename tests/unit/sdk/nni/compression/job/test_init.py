import pytest

import nni.compression.job as package


def test_public_names_are_imported_from_their_homes() -> None:
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
        assert name in dir(package)


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'submit_job'"):
        package.submit_job  # noqa: B018 - the access is what is tested
