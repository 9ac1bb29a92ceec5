"""Static files of the web page: one document for all paths, scripts and styles by hashed names.

They are built from `services/manager/webui` (see its README) and committed, so that serving the
page needs no Node.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as HttpRoute

from svc_common.errors import ServiceError
from svc_manager.web.listeners.compression import SMALLEST_BYTES, accepts_gzip
from svc_manager.web.listeners.endpoints import head_of
from svc_manager.web.listeners.error_page import refusal
from svc_manager.web.page_access import LIFETIME_S
from svc_manager.web.security import TOKEN_QUERY, AccessPolicy

PAGE_PATHS: Final = (
    "/",
    "/oview",
    "/detail",
    "/charts",
    "/architectures",
    "/machines",
    "/experiment",
)
PAGE_FOLDER: Final = Path(__file__).parents[1] / "webui"
_DOCUMENT: Final = "index.html"
_STATIC: Final = "static"
_MEDIA_TYPES: Final = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
_REVALIDATE: Final = "no-cache"
_IMMUTABLE: Final = "public, max-age=31536000, immutable"
"""Cache-Control of files whose names change with their content."""


def page_routes(policy: AccessPolicy) -> list[HttpRoute]:
    """Build the routes of the web page: its static files, and its document at each page path."""
    files = sorted(
        path for path in (PAGE_FOLDER / _STATIC).iterdir() if path.suffix in _MEDIA_TYPES
    )
    routes = [
        HttpRoute(f"/{_STATIC}/{path.name}", _file_endpoint(path, _IMMUTABLE)) for path in files
    ]
    document = _token_login(_file_endpoint(PAGE_FOLDER / _DOCUMENT, _REVALIDATE), policy)
    routes += [HttpRoute(path, document) for path in PAGE_PATHS]
    return routes


@cache
def _content(path: Path) -> bytes:
    return path.read_bytes()


@cache
def _compressed(path: Path) -> bytes:
    """Return the gzip of a file, made once: every view consists of several files."""
    return gzip.compress(_content(path), mtime=0)


def _file_endpoint(path: Path, caching: str) -> Callable[[Request], Awaitable[Response]]:
    content = _content(path)
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"ETag": tag, "Cache-Control": caching, "Vary": "Accept-Encoding"}
    media_type = _MEDIA_TYPES[path.suffix]

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        if len(content) < SMALLEST_BYTES or not accepts_gzip(
            request.headers.get("accept-encoding", "")
        ):
            return Response(content, media_type=media_type, headers=headers)
        encoded = {**headers, "Content-Encoding": "gzip"}
        return Response(_compressed(path), media_type=media_type, headers=encoded)

    return serve


def _token_login(
    document: Callable[[Request], Awaitable[Response]], policy: AccessPolicy
) -> Callable[[Request], Awaitable[Response]]:
    """Return the page's endpoint, wrapped: a token in the address becomes a cookie, by redirect."""

    async def serve(request: Request) -> Response:
        token = request.query_params.get(TOKEN_QUERY)
        if token is None:
            return await document(request)
        head = head_of(request, policy)
        if policy.is_ambiguous(head):
            unambiguous = request.url.replace(hostname="127.0.0.1")
            headers = {"Cache-Control": "no-store"}
            return RedirectResponse(unambiguous, status_code=303, headers=headers)
        try:
            cookie = policy.log_in(head, token)
        except ServiceError as error:
            return refusal(request, error)
        given = request.query_params.multi_items()
        others = [(key, text) for key, text in given if key != TOKEN_QUERY]
        target = str(request.scope["path"]) + ("?" + urlencode(others) if others else "")
        response = RedirectResponse(target, status_code=303, headers={"Cache-Control": "no-store"})
        response.set_cookie(
            policy.cookie_name,
            cookie,
            max_age=LIFETIME_S,
            httponly=True,
            secure=policy.encrypted,
            samesite="strict",
            path="/",
        )
        return response

    return serve
