from docs.generator.rest_api import rest_page
from svc_manager.web.listeners.route_table import ROUTES


def test_page_has_a_section_for_every_route() -> None:
    page = rest_page()

    missing = [one for one in ROUTES if f"\n## {one.method.upper()} {one.path}\n" not in page]
    assert missing == []
