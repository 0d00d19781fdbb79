"""Somebody who uses the page over HTTP, as a browser without JavaScript would: cookies, forms, and links."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from starlette.testclient import TestClient

from recollect.doors.web import PAGE
from recollect.doors.web.entry import COOKIE

ORIGIN = "http://localhost"


class Visitor:
    """A browser of one person; `place` is the team and project in which they look."""

    def __init__(self, client: TestClient, **place: str) -> None:
        self.client = client
        self.place = place
        self._form_tokens: dict[str, str] = {}

    def open(self, url: str) -> Any:
        """Open the one-time address that the daemon has made."""
        return self.client.get(url.removeprefix(ORIGIN), follow_redirects=True)

    def sign_in(self, token: str) -> Any:
        """Paste a token."""
        return self.client.post(f"{PAGE}/sign-in", data={"secret": token}, headers={"Origin": ORIGIN})

    def get(self, path: str, **query: Any) -> Any:
        """Open a screen."""
        return self.client.get(f"{PAGE}/{path}", params=self.place | query)

    def json(self, path: str, **query: Any) -> Any:
        """Return the JSON of a screen."""
        answer = self.get(path, **query, format="json")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, fields: dict[str, Any], **options: Any) -> Any:
        """Send a form of ours, and follow where it leads."""
        body = {"token": self.form_token} | fields
        headers = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
        return self.client.post(f"{PAGE}/{path}", data=body, params=self.place, headers=headers, **options)

    @property
    def form_token(self) -> str:
        """Return the token that the forms of this browser carry, as long as its cookie is the same."""
        cookie = str(self.client.cookies.get(COOKIE))
        if cookie not in self._form_tokens:
            found = re.search(r'name="token" value="([^"]+)"', self.get("").text)
            self._form_tokens[cookie] = unescape(found[1]) if found else ""
        return self._form_tokens[cookie]
