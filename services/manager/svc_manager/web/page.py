"""The page's files: one document for all of its addresses, a script, a style sheet."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as HttpRoute

from svc_common.errors import UnauthenticatedError
from svc_manager.web.errors import error_response
from svc_manager.web.security import TOKEN_QUERY, AccessPolicy

PAGE_PATHS: Final = ("/", "/oview", "/detail", "/experiment")
_FOLDER: Final = Path(__file__).parent / "webui"
_MEDIA_TYPES: Final = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
_DOCUMENT: Final = "index.html"


def page_routes(policy: AccessPolicy) -> list[HttpRoute]:
    """Return the routes of the page; its files are read once, here."""
    files = {path.name: path for path in _FOLDER.iterdir() if path.suffix in _MEDIA_TYPES}
    document = _served(files.pop(_DOCUMENT))
    routes = [
        HttpRoute(f"/static/{name}", _served(path), name=name) for name, path in files.items()
    ]
    routes += [HttpRoute(path, _with_token(document, policy)) for path in PAGE_PATHS]
    return routes


def _served(path: Path) -> Callable[[Request], Awaitable[Response]]:
    content = path.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=_MEDIA_TYPES[path.suffix], headers=headers)

    return serve


def _with_token(
    document: Callable[[Request], Awaitable[Response]], policy: AccessPolicy
) -> Callable[[Request], Awaitable[Response]]:
    """Turn the token of the printed address into a cookie and send the browser on without it."""

    async def serve(request: Request) -> Response:
        token = request.query_params.get(TOKEN_QUERY)
        if token is None:
            return await document(request)
        if not policy.matches(token):
            return error_response(
                UnauthenticatedError("this token is not the installation's; ask nnictl again")
            )
        given = request.query_params.multi_items()
        others = [(key, text) for key, text in given if key != TOKEN_QUERY]
        target = request.url.path + ("?" + urlencode(others) if others else "")
        answer = RedirectResponse(target, status_code=303, headers={"Cache-Control": "no-store"})
        answer.set_cookie(
            policy.cookie_name, policy.token, httponly=True, samesite="strict", path="/"
        )
        return answer

    return serve
