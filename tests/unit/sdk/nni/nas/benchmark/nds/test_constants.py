"""Names of the operations of NDS."""

from nni.nas.benchmark.nds import constants


def test_each_name_is_its_value_in_lower_case() -> None:
    names = {name for name in vars(constants) if name.isupper()}

    assert len(names) == 16
    assert all(getattr(constants, name) == name.lower() for name in names)
