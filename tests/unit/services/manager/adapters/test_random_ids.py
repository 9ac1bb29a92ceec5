import re

import pytest

from svc_manager.adapters.random_ids import RandomIds


@pytest.mark.claim("platform", 27)
def test_ids_have_the_form_that_the_specification_gives() -> None:
    ids = RandomIds()

    trials = {ids.trial_id() for _ in range(1000)}

    assert all(re.fullmatch("[A-Za-z0-9]{5}", one) for one in trials)
    assert re.fullmatch("[a-z0-9]{8}", ids.experiment_id())
    assert 0 <= ids.seed() < 2**31
    # 62^5 = 9e8 ids: among 1,000 the expected number of pairs that agree is 5e-4.
    assert len(trials) >= 998


def test_the_same_request_gives_the_same_id_wherever_it_is_asked() -> None:
    ids = RandomIds()

    drawn = [ids.experiment_id("request 1", draw) for draw in range(100)]

    assert drawn == [RandomIds().experiment_id("request 1", draw) for draw in range(100)]
    assert all(re.fullmatch("[a-z0-9]{8}", one) for one in drawn)
    assert len({*drawn, ids.experiment_id("request 2"), ids.experiment_id()}) == 102
