"""Embeds by a server that speaks OpenAI's `/v1/embeddings`. It is the one room that imports httpx for that.

Such a server gives one vector for a text and no tokens, so that nothing is kept for late interaction.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from recollect.domain.search import ModelCard
from recollect.engines.embedder import TokenEmbeddings
from recollect.engines.embedding.tokens import same_length_text
from recollect.engines.http_client import client_for
from recollect.engines.loading import EmbeddingModel
from recollect.errors import ModelMismatch, ModelUnusable
from recollect.gate import masked

if TYPE_CHECKING:
    import httpx

    from recollect.engines.embedder import Vector

_MAX_TEXTS: Final = 32  # in one request: what text-embeddings-inference takes by default
_MAX_CHARACTERS: Final = 32_000
_MAX_ANSWER_BYTES: Final = 16_000_000  # bytes of an answer: five times what the longest vectors take
_QUERY_SECONDS: Final = 2.0  # seconds that a recall waits
_DOCUMENT_SECONDS: Final = 30.0
_MAX_TRIES: Final = 3
_MAX_BATCHES_AT_ONCE: Final = 2  # of documents, at once
_LONG: Final = re.compile(r"token|too long|too large|length|exceed|maximum", re.IGNORECASE)
_MIN_HALVED: Final = 16  # characters: a text that is refused even so is not refused for its length
_TOKEN: Final = re.compile(r"[A-Za-z]{1,3}|[^\W_a-zA-Z]|[^\w\s]|_")  # more tokens than any model makes of most text


class _TooLong(Exception):
    """The server refused a request for its length."""


class _TryAgain(Exception):
    """The server did not answer, or asks to be asked again after `after` seconds."""

    def __init__(self, message: str, after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after


class ServedEmbedder(EmbeddingModel["httpx.Client"]):
    """An embedder whose model runs in another process; may be used by many threads at once."""

    def __init__(self, card: ModelCard, url: str, key: str = "") -> None:
        super().__init__()
        self._card = card
        root = url.rstrip("/")
        self._endpoint = f"{root}/embeddings" if root.endswith("/v1") else f"{root}/v1/embeddings"
        self._key = key
        self._name = card.served_as or card.id
        self._reported = ""
        self._slots = threading.Semaphore(_MAX_BATCHES_AT_ONCE)
        self._dropping = threading.Lock()

    @property
    def card(self) -> ModelCard:
        """Return the model's card."""
        return self._card

    def read(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[TokenEmbeddings]:
        """Return the unit vector of each text, in order, without tokens.

        Raises `ModelUnusable` where there is no sound answer and `ModelMismatch` where another model answers; it is not
        ready from then on, until `warm` finds it answering.
        """
        query = kind == "query"
        until = time.monotonic() + (_QUERY_SECONDS if query else _DOCUMENT_SECONDS)
        client = self._client_within(until)
        prompt = self._card.query_prompt if query else self._card.document_prompt
        found: list[Vector] = []
        for batch in _request_batches([same_length_text(prompt + (masked(text) if query else text)) for text in texts]):
            if query:
                found += self._vectors_or_not_ready(client, batch, until)
                continue
            self._give_way()
            with self._slots:
                found += self._vectors_or_not_ready(client, batch, time.monotonic() + _DOCUMENT_SECONDS)
        none = np.empty((0, self._card.dimensions), dtype=np.float32)
        return [TokenEmbeddings(vector, none, ()) for vector in found]

    def close(self) -> None:
        """End the connections to the server; the next use opens others."""
        client, self._kept = self._kept, None
        if client is not None:
            client.close()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return stretches of `text` that are at most one token each, for most models and scripts."""
        return [token.span() for token in _TOKEN.finditer(text)]

    def counter(self) -> Callable[[str], int] | None:
        """Return None: the server's tokens are not known here."""
        return None

    def _model(self) -> httpx.Client:
        return self._client_within(time.monotonic() + _DOCUMENT_SECONDS)

    def _load(self) -> httpx.Client:
        return self._connect(time.monotonic() + _DOCUMENT_SECONDS)

    def _connect(self, until: float) -> httpx.Client:
        """Return a client whose server answered a probe; raise `ModelUnusable` or `ModelMismatch` where it did not."""
        if find_spec("httpx") is None or find_spec("tenacity") is None:
            raise ModelUnusable("An embedding server needs httpx and tenacity: pip install 'recollect[server]'")
        import httpx

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            client = client_for(self._endpoint, httpx.Client, headers=headers)
        except ConnectionError as error:
            self._failure = f"The embedding server cannot be asked: {error}."
            raise ModelUnusable(self._failure) from None
        try:
            self._unit_vectors(client, ["probe"], until)
        except (ModelUnusable, ModelMismatch) as error:
            client.close()
            self._failure = str(error)
            raise
        self._failure = ""
        return client

    def _client_within(self, until: float) -> httpx.Client:
        """Return the client of a server that answered; `until` limits the wait for other threads too."""
        if (client := self._kept) is not None:
            return client
        if not self._loading.acquire(timeout=max(0.0, until - time.monotonic())):
            raise ModelUnusable("The embedding server does not answer yet.")
        try:
            if self._kept is None:
                self._kept = self._connect(until)
            return self._kept
        finally:
            self._loading.release()

    def _vectors_or_not_ready(self, client: httpx.Client, texts: list[str], until: float) -> list[Vector]:
        """Return the vectors of a batch; on an error mark the embedder as not ready and raise it."""
        try:
            return self._unit_vectors(client, texts, until)
        except (ModelUnusable, ModelMismatch) as error:
            with self._dropping:  # not the lock of loading, which is held for as long as that takes
                if self._kept is client:
                    self._failure = str(error)
                    self.close()
            raise

    def _unit_vectors(self, client: httpx.Client, texts: list[str], until: float) -> list[Vector]:
        """Return the unit vector of each text; of a text too long for the server, the mean of its halves."""
        try:
            return self._checked_vectors(self._post_with_retries(client, texts, until), len(texts))
        except _TooLong:
            if len(texts) > 1:
                return [vector for text in texts for vector in self._unit_vectors(client, [text], until)]
            if len(texts[0]) <= _MIN_HALVED:
                raise ModelUnusable("The embedding server refuses even a short text.") from None
        halves = _halves_of(texts[0])
        vectors = [self._unit_vectors(client, [half], until)[0] * len(half) for half in halves]
        return [_unit_vector(vectors[0] + vectors[1])]

    def _post_with_retries(self, client: httpx.Client, texts: list[str], until: float) -> Any:
        """Return the JSON answer of the server, asked again until `until`; raise `ModelUnusable` without an answer."""
        import tenacity

        waiting = tenacity.wait_random_exponential(multiplier=0.2, max=5.0)

        def pause(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            return max(waiting(state), getattr(error, "after", 0.0))

        def over(state: tenacity.RetryCallState) -> bool:
            return state.attempt_number >= _MAX_TRIES or time.monotonic() + state.upcoming_sleep >= until

        tried = tenacity.Retrying(
            stop=over, wait=pause, retry=tenacity.retry_if_exception_type(_TryAgain), reraise=True
        )
        try:
            return tried(self._post_once, client, texts, until)
        except _TryAgain as error:
            raise ModelUnusable(f"The embedding server does not answer: {error}.") from None

    def _post_once(self, client: httpx.Client, texts: list[str], until: float) -> Any:
        """Return the JSON answer to a single request; raise `_TryAgain` where another attempt may help."""
        import httpx

        left = until - time.monotonic()
        if left <= 0.0:
            raise _TryAgain("it took too long")
        body = {"model": self._name, "input": texts, "encoding_format": "float"}
        reply = bytearray()
        try:
            # The phases add up to what is left; only an answer that trickles in may take half as much again.
            limits = httpx.Timeout(left / 6, read=left / 2)
            with client.stream("POST", self._endpoint, json=body, timeout=limits) as answer:
                for some in answer.iter_bytes():
                    reply += some
                    if len(reply) > _MAX_ANSWER_BYTES:
                        raise ModelUnusable("The embedding server answers with more than vectors take.")
                    if time.monotonic() > until:
                        raise _TryAgain("it took too long")
        except httpx.InvalidURL:
            raise ModelUnusable("RECOLLECT_EMBEDDING_URL is no address.") from None
        except (httpx.HTTPError, RuntimeError) as error:  # the latter where another thread closed the client
            raise _TryAgain(type(error).__name__) from None
        self._raise_for_status(answer.status_code, answer.headers.get("Retry-After", ""), bytes(reply))
        try:
            return json.loads(reply)
        except ValueError:
            raise ModelUnusable("The embedding server answers with something that is not JSON.") from None

    def _raise_for_status(self, status: int, after: str, reply: bytes) -> None:
        """Raise the error that a status other than 200 means.

        The server's own text is not repeated: it may hold the text that was sent.
        """
        if status == 200:
            return
        if status == 413 or (status in (400, 422) and _LONG.search(reply.decode("utf-8", "replace"))):
            raise _TooLong
        if status == 429 or status >= 500:
            raise _TryAgain(f"status {status}", float(after) if after.isdecimal() else 0.0)
        if status in (401, 403):
            raise ModelUnusable(f"The embedding server refuses RECOLLECT_EMBEDDING_KEY: status {status}.")
        if status == 404:
            raise ModelUnusable(f"The embedding server has no model `{self._name}`, or its address is another.")
        raise ModelUnusable(f"The embedding server refuses the request: status {status}.")

    def _checked_vectors(self, body: Any, count: int) -> list[Vector]:
        """Return the `count` vectors in an answer, in order; raise where some are missing or another model answered."""
        try:
            reported = str(body.get("model") or "")
            rows = {
                int(row.get("index", place)): _parse_vector(row["embedding"]) for place, row in enumerate(body["data"])
            }
        except (AttributeError, KeyError, TypeError, ValueError, binascii.Error):
            raise ModelUnusable("The embedding server answers in a form that is not OpenAI's.") from None
        if sorted(rows) != list(range(count)):
            raise ModelUnusable("The embedding server left out embeddings.")
        self._reported = self._reported or reported
        if reported != self._reported or any(vector.shape != (self._card.dimensions,) for vector in rows.values()):
            raise ModelMismatch("Another model answers at the embedding server than the store was built with.")
        return [_unit_vector(rows[place]) for place in range(count)]


def _request_batches(texts: list[str]) -> Iterator[list[str]]:
    """Yield the texts in groups that fit into a request."""
    batch: list[str] = []
    for text in texts:
        if batch and (len(batch) == _MAX_TEXTS or sum(map(len, batch)) + len(text) > _MAX_CHARACTERS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _halves_of(text: str) -> tuple[str, str]:
    """Return a text in two halves, cut at white space in its second quarter where there is some."""
    middle = len(text) // 2
    space = text.rfind(" ", middle // 2, middle)
    cut = space + 1 if space >= 0 else middle
    return text[:cut], text[cut:]


def _parse_vector(values: Any) -> Vector:
    """Return a vector that came as numbers or as base64 of float32."""
    if isinstance(values, str):
        return np.frombuffer(base64.b64decode(values, validate=True), dtype="<f4").astype(np.float32)
    return np.asarray(values, dtype=np.float32)


def _unit_vector(vector: Vector) -> Vector:
    """Return the vector at unit length; raise `ModelUnusable` for a zero vector or one that is not finite."""
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if not np.isfinite(length) or length == 0.0:
        raise ModelUnusable("The embedding server gave a vector that is zero or no number.")
    unit: Vector = (vector / length).astype(np.float32)
    return unit
