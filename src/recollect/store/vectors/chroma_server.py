"""Chroma as a server that several replicas ask: the collections of one deployment, among those of others.

A server that does not answer is away, not broken: nothing is dropped, and when it is back the index is looked at as
after an opening. What deleted vectors leave in the server's files is its own to compact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from recollect.store.vectors.chroma import ChromaCollections, IndexAway, IndexBroken, connected, guarded, released

T = TypeVar("T")


class ChromaServer(ChromaCollections):
    """The collections of a deployment on a Chroma server; `store` tells them from those of others."""

    proven_by_use = True

    def __init__(self, url: str, generation: str, store: str) -> None:
        super().__init__(generation)
        self._url = url
        self._store = store

    def open(self) -> Any:
        """Connect; raise `IndexAway` where the server does not answer."""
        with self._opening:
            if self._client is None:
                self._client = guarded(lambda: connected(self._url))
            return self._client

    def proven(self) -> None:
        """Do nothing: a damaged graph ends the server, not this process."""

    def discard(self) -> None:
        """Delete the collections of this generation, so that they are built again."""
        client = self.open()
        self._collections.clear()
        for one in guarded(client.list_collections):
            if one.name.startswith(f"{self.generation}-{self._store}-"):
                guarded(lambda: client.delete_collection(one.name))  # noqa: B023 - called at once

    def close(self) -> None:
        """Let go of the connection."""
        with self._opening:
            client, self._client = self._client, None
            self._collections.clear()
        if client is not None:
            guarded(lambda: released(client))

    def compact(self) -> None:
        """Do nothing: the server's files are its own."""

    def shadow(self, generation: str) -> ChromaServer:
        """Return the index of another generation on the same server, through the same client."""
        other = ChromaServer(self._url, generation, self._store)
        other._client = self.open()
        return other

    def prune(self, building: str = "") -> None:
        """Delete the collections of our generations that nothing asks for, but not of the one that is `building`."""
        client = self.open()
        kept = {self.generation, building}
        for one in guarded(client.list_collections):
            generation, _, rest = one.name.partition("-")
            if rest.startswith(f"{self._store}-") and generation not in kept:
                guarded(lambda: client.delete_collection(one.name))  # noqa: B023 - called at once

    def _name(self, namespace: str) -> str:
        return f"{self.generation}-{self._store}-{hashlib.sha256(namespace.encode()).hexdigest()[:32]}"

    def _guarded(self, namespace: str, call: Callable[[Any], T]) -> T:
        """Call once more with a collection looked up anew: another replica may have built it again."""
        try:
            return super()._guarded(namespace, call)
        except IndexAway:
            self.close()
            raise
        except IndexBroken:
            self._collections.pop(namespace, None)
            return super()._guarded(namespace, call)
