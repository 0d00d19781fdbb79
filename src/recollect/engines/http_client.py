"""How a server of ours is asked by HTTP: through the proxy that the environment names, but never one on this machine.

A proxy of the environment stands elsewhere, where "127.0.0.1" is another machine. `NO_PROXY` need not say that.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

from recollect.server_url import is_loopback

C = TypeVar("C")


def client_for(url: str, kind: Callable[..., C], **options: Any) -> C:
    """Return a client of `kind`, which takes the options of httpx, for the server at `url`.

    Raises `ConnectionError` where the environment names a proxy that cannot be used.
    """
    parts = urlsplit(url)
    if is_loopback(parts.hostname or ""):
        # Without the environment the library would not see SSL_CERT_FILE either, which OpenSSL itself reads.
        certificates = {"verify": ssl.create_default_context()} if parts.scheme == "https" else {}
        return kind(**{"trust_env": False, **certificates, **options})
    try:
        for proxy in getproxies().values():
            _ = urlsplit(proxy).port  # which raises for one that is no number
        return kind(**options)
    except (ImportError, ValueError) as error:
        raise ConnectionError(f"the proxy that the environment names cannot be used: {error}") from None
