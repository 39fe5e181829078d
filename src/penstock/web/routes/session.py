"""Who a client is: a token once as a cookie, so that a page need not keep it where scripts can read it."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from penstock.http.access import COOKIE, Access
from penstock.http.error_bodies import json_response
from penstock.web.routes.bodies import LoginBody

LOGIN = "/api/login"


def add_session(app: FastAPI, access: Access) -> None:
    """Add the routes."""

    @app.post(LOGIN, summary="Keep a token as a cookie")
    async def login(body: LoginBody) -> Response:
        token = access.token_of(body.token)
        if token is None:
            problem = "this is no token of the console" if access.tokens else "this console has no tokens"
            return json_response({"error": problem, "kind": "refused", "problem": problem}, 401)
        answer = json_response({"name": token.name, "may_change": not token.looks_only})
        answer.set_cookie(COOKIE, body.token, httponly=True, samesite="strict", path="/")
        return answer

    @app.get("/api/me", summary="Who this client is, and whether it may change anything")
    async def me(request: Request) -> Response:
        return json_response(
            {
                "name": request.state.owner or "",
                "may_change": access.may_change(request.headers),
                "tokens": bool(access.tokens),
            }
        )
