"""Why trials are as they are, over REST."""

from tests.unit.services.manager.web.conftest import API, Site


async def test_a_trial_is_explained(site: Site) -> None:
    answer = (await site.stranger.get(f"{API}/trials/tria1/why")).json()

    assert (answer["trialJobId"], answer["verdict"]) == ("tria1", "FAILED")
    assert answer["reasons"] == [{"kind": "EXIT_CODE", "text": "exit code 1", "remedy": ""}]
    assert (answer["exitCode"], answer["signal"]) == (1, None)


async def test_the_next_trial_is_explained(site: Site) -> None:
    answer = (await site.stranger.get(f"{API}/why")).json()

    assert (answer["trialJobId"], answer["status"]) == (None, None)
    assert (answer["verdict"], answer["summary"]) == ("NOT_CREATED", "no slot")


async def test_an_unknown_trial_has_no_explanation(site: Site) -> None:
    assert (await site.stranger.get(f"{API}/trials/nobody/why")).status_code == 404
