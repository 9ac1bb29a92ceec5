"""Routes of remarks."""

from __future__ import annotations

import pytest

from tests.unit.services.manager.web.conftest import API, EXPERIMENT, Site


async def test_absent_fields_stay_as_they_are(site: Site) -> None:
    path = f"{API}/trial-jobs/tria1/remarks"
    await site.client.put(path, json={"note": "look", "tags": ["a"]})

    answer = await site.client.put(path, json={"starred": True}, headers={"Idempotency-Key": "k"})

    trial = (await site.anonymous.get(f"{API}/trial-jobs/tria1")).json()
    assert answer.json() == {"note": "look", "tags": ["a"], "starred": True} == trial["remarks"]
    assert site.manager.request_ids[-1] == "k"


async def test_remarks_of_the_experiment_are_in_profile_and_list(site: Site) -> None:
    await site.client.put(f"{API}/experiment/remarks", json={"tags": ["paper"]})

    profile = (await site.anonymous.get(f"{API}/experiment")).json()
    listed = (await site.anonymous.get(f"{API}/experiments-info")).json()

    assert [one["remarks"]["tags"] for one in listed if one["id"] == EXPERIMENT] == [["paper"]]
    assert profile["remarks"] == {"note": "", "tags": ["paper"], "starred": False}


@pytest.mark.parametrize(
    "body",
    [{}, [], {"text": "x"}, {"note": 1}, {"tags": "a"}, {"tags": [1]}, {"starred": 1},
     {"tags": ["a,b"]}],
)  # fmt: skip
async def test_bodies_of_a_wrong_type_are_refused(site: Site, body: object) -> None:
    answer = await site.client.put(f"{API}/experiment/remarks", json=body)

    assert answer.status_code == 400


async def test_changing_needs_the_token_and_a_known_trial(site: Site) -> None:
    refused = await site.anonymous.put(f"{API}/experiment/remarks", json={"note": "x"})
    unknown = await site.client.put(f"{API}/trial-jobs/nobod/remarks", json={"note": "x"})

    assert (refused.status_code, unknown.status_code) == (401, 404)


async def test_half_a_surrogate_pair_in_json_is_refused(site: Site) -> None:
    answer = await site.client.put(
        f"{API}/experiment/remarks",
        content=b'{"note": "\\ud800"}',
        headers={"Content-Type": "application/json"},
    )

    assert (answer.status_code, "note" in answer.json()["error"]) == (400, True)
