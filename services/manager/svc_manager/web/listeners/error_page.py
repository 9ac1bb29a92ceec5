"""Error responses for people: a browser that opens an address gets a page instead of JSON."""

from __future__ import annotations

from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from svc_common.errors import ServiceError
from svc_manager.web.errors import error_response, status_of, text_response

_API: Final = "/api/"
_TITLES: Final = {
    401: "This address is not valid any more",
    403: "This address is not for this browser",
    404: "There is no such page",
}
_REMEDIES: Final = {
    401: "Run <code>nnictl webui url</code> where NNI runs; it prints an address that is valid.",
    403: "Run <code>nnictl webui url</code> where NNI runs; it prints an address for this browser.",
    404: "The address may be mistyped, or of another version.",
}
_OTHER: Final = "Run <code>nnictl status</code> where NNI runs; it shows what is wrong."
# Without style: the content policy of the page admits no inline one.
_DOCUMENT: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>{title} - NNI</title>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{remedy}</p>
<p><a href="{home}">Open the page without it</a></p>
<p><small>{status}: {message}</small></p>
</main>
</body>
</html>
"""


def refusal(request: Request, error: ServiceError) -> Response:
    """Return the response to a refused request: a page for a browser, else JSON."""
    if not _wants_page(request):
        return error_response(error)
    return _page(request, status_of(error), error.message)


def http_error(request: Request, status: int, detail: str, headers: dict[str, str]) -> Response:
    """Return the response to an error of the framework: a page for a browser, else JSON."""
    if not _wants_page(request):
        return text_response(status, detail, headers=headers)
    response = _page(request, status, detail)
    response.headers.update(headers)
    return response


def _wants_page(request: Request) -> bool:
    """Return whether a request is a GET that accepts HTML, outside of the API."""
    accepted = request.headers.get("accept", "")
    return request.method == "GET" and "text/html" in accepted and _API not in request.url.path


def _page(request: Request, status: int, message: str) -> Response:
    content = _DOCUMENT.format(
        title=_TITLES.get(status, "This page cannot be shown"),
        remedy=_REMEDIES.get(status, _OTHER),
        home=escape(request.scope.get("root_path", "") + "/"),
        status=status,
        message=escape(message),
    )
    return HTMLResponse(content, status_code=status, headers={"Cache-Control": "no-store"})
