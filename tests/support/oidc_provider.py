"""A real identity provider as a process: Django OAuth Toolkit, with people in groups, clients, and a key of its own.

Run as a program it is the provider; imported it starts and asks one. Its access tokens are JWTs for the resource that
a client has named.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from team_process import free_port

PASSWORD: Final = "correct horse battery staple"
PAGE_CLIENT, PAGE_SECRET = "recollect-page", "not-a-secret-of-anybody"
LOGIN_CLIENT: Final = "recollect-login"
BARE_CLIENT: Final = "recollect-bare"
"""A client like that of the page, whose ID tokens name neither a user nor groups: the endpoint of user info does."""
_PATIENCE: Final = 60.0
_HIDDEN: Final = re.compile(r'<input type="hidden"[^>]*>')
_ATTRIBUTE: Final = re.compile(r'(name|value)="([^"]*)"')


def new_key() -> str:
    """Return a private key as PEM."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    kind, clear = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, kind, clear).decode()


class OidcProvider:
    """A provider with the clients of the page and of `recollect login`; `page` is the address of the page's server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.issuer = f"http://127.0.0.1:{self._port}"
        self.key = new_key()

    def start(self) -> None:
        """Start it over the people and clients that it has, with the key that it has by now."""
        environment = {name: text for name, text in os.environ.items() if not name.startswith("DJANGO_")}
        environment |= {"PROVIDER_FOLDER": str(self._folder), "PROVIDER_KEY": self.key}
        with (self._folder / "log").open("ab") as log:
            command = [sys.executable, __file__, str(self._port)]
            self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        end = time.monotonic() + _PATIENCE
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text()[-2_000:]
            assert time.monotonic() < end
            time.sleep(0.05)

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def rotate(self) -> None:
        """Begin to sign with another key, which it alone publishes from now on."""
        self.stop()
        self.key = new_key()
        self.start()

    def person(self, name: str, *groups: str) -> str:
        """Add a person or change their groups, and return the subject that the provider calls them."""
        return str(self._control("person", name=name, groups=groups)["subject"])

    def client(self, client_id: str, *redirects: str, secret: str = "", device: bool = False) -> None:
        """Register a client, or change its addresses."""
        self._control("client", client_id=client_id, redirects=redirects, secret=secret, device=device)

    def signed(self, key: str = "", header_typ: str = "JWT", **claims: Any) -> str:
        """Return a token that the provider might have signed, with claims in place of its usual ones."""
        now = int(time.time())
        usual = {"iss": self.issuer, "iat": now, "exp": now + 300, "jti": uuid.uuid4().hex}
        body = {name: value for name, value in (usual | claims).items() if value is not None}
        return jwt.encode(body, key or self.key, "RS256", {"kid": self._kid(), "typ": header_typ})

    def _kid(self) -> str:
        with urllib.request.urlopen(f"{self.issuer}/.well-known/jwks.json") as answer:
            return str(json.load(answer)["keys"][0]["kid"])

    def _control(self, what: str, **fields: Any) -> dict[str, Any]:
        asked = urllib.request.Request(f"{self.issuer}/control/{what}", json.dumps(fields).encode())
        with urllib.request.urlopen(asked) as answer:
            return dict(json.load(answer))

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.issuer}/.well-known/openid-configuration"):
                return True
        except urllib.error.URLError:
            return False


class Visitor:
    """A browser at the provider, in which a person logs in when they are asked to."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._client = httpx2.Client()

    def follow(self, address: str) -> str:
        """Open an address of the provider, log in and consent as asked, and return where it sends the browser."""
        answer = self._client.get(address)
        while not answer.is_redirect or self._stays(answer):
            if answer.is_redirect:
                answer = self._client.get(answer.next_request.url)  # type: ignore[union-attr]
            else:
                answer = self._submit(answer, username=self._name, password=PASSWORD, allow="Authorize")
        return str(answer.headers["location"])

    def decide(self, address: str, code: str, action: str) -> None:
        """Log in, type the code of a device, and accept or deny."""
        self._client.follow_redirects = True
        asked = self._submit(self._client.get(address), username=self._name, password=PASSWORD)
        self._submit(self._submit(asked, user_code=code), action=action)

    def _submit(self, page: httpx2.Response, **fields: str) -> httpx2.Response:
        """Send the form of a page, with what is hidden in it."""
        assert page.is_success, page.text
        hidden = [dict(_ATTRIBUTE.findall(each)) for each in _HIDDEN.findall(page.text)]
        return self._client.post(page.url, data=fields | {each["name"]: each.get("value", "") for each in hidden})

    @staticmethod
    def _stays(answer: httpx2.Response) -> bool:
        return answer.next_request is not None and answer.next_request.url.netloc == answer.url.netloc


@contextmanager
def running(folder: Path) -> Iterator[OidcProvider]:
    """Give a provider that runs until the block ends."""
    provider = OidcProvider(folder)
    provider.start()
    try:
        yield provider
    finally:
        provider.stop()


def serve(port: int) -> None:
    """Be the provider."""
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

    import django
    from django.conf import settings

    folder, issuer = Path(os.environ["PROVIDER_FOLDER"]), f"http://127.0.0.1:{port}"
    login = "<form method=post>{% csrf_token %}{{ form }}<button>Log in</button></form>"
    loaders = [
        ("django.template.loaders.locmem.Loader", {"registration/login.html": login}),
        "django.template.loaders.app_directories.Loader",
    ]
    settings.configure(
        ALLOWED_HOSTS=["*"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(folder / "provider.db")}},
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        INSTALLED_APPS=[
            *("django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"),
            *("django.contrib.staticfiles", "oauth2_provider"),
        ],
        LOGGING={
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"log": {"class": "logging.StreamHandler"}},
            "root": {"handlers": ["log"], "level": "ERROR"},
        },
        LOGIN_URL="/login",
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        OAUTH2_PROVIDER={
            "ACCESS_TOKEN_GENERATOR": f"{__name__}.access_token",
            "ALLOWED_SCHEMES": ["http", "https"],
            "DCR_ENABLED": True,
            "DCR_REGISTRATION_PERMISSION_CLASSES": ("oauth2_provider.dcr.AllowAllDCRPermission",),
            "DEVICE_FLOW_INTERVAL": 1,
            "OAUTH_DEVICE_VERIFICATION_URI": f"{issuer}/device/",
            "OAUTH2_VALIDATOR_CLASS": f"{__name__}.validator",
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": issuer,
            "OIDC_RSA_PRIVATE_KEY": os.environ["PROVIDER_KEY"],
            "SCOPES": {"openid": "Who you are", "profile": "Your name and your groups"},
        },
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        ROOT_URLCONF=__name__,
        SECRET_KEY="of a provider in tests",
        STATIC_URL="static/",
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "loaders": loaders,
                    "context_processors": ["django.template.context_processors.request"],
                },
            }
        ],
        USE_TZ=True,
    )
    django.setup()
    _prepare()

    from socketserver import ThreadingMixIn

    from django.core.handlers.wsgi import WSGIHandler
    from django.core.management import call_command

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    call_command("migrate", verbosity=0)
    with make_server("127.0.0.1", port, WSGIHandler(), Server, Quiet) as server:
        server.serve_forever()


def _prepare() -> None:
    """Put into this module what Django looks for in it by name: addresses, claims and access tokens."""
    from django.contrib.auth import views
    from django.contrib.auth.models import Group, User
    from django.db.models.signals import pre_save
    from django.http import HttpRequest, JsonResponse
    from django.urls import include, path
    from django.views.decorators.csrf import csrf_exempt
    from jwcrypto import jwk
    from oauth2_provider.models import Application
    from oauth2_provider.oauth2_validators import OAuth2Validator
    from oauth2_provider.settings import oauth2_settings
    from oauth2_provider.views import ConnectDiscoveryInfoView

    def about(user: Any) -> dict[str, Any]:
        return {"preferred_username": user.username, "groups": [each.name for each in user.groups.all()]}

    class Validator(OAuth2Validator):  # type: ignore[misc]
        oidc_claim_scope = OAuth2Validator.oidc_claim_scope | {"groups": "profile"}

        def get_additional_claims(self, request: Any) -> dict[str, Any]:
            bare = request.client.client_id == BARE_CLIENT and request.grant_type
            return {} if bare else about(request.user)

    def access_token(request: Any, **_: Any) -> str:
        now = int(time.time())
        claims = {"iss": oauth2_settings.OIDC_ISS_ENDPOINT, "iat": now, "exp": now + 300, "jti": uuid.uuid4().hex}
        claims |= {"sub": str(request.user.pk), "client_id": request.client.client_id} | about(request.user)
        claims |= {"aud": getattr(request, "resource", None) or request.client.client_id}
        pem = oauth2_settings.OIDC_RSA_PRIVATE_KEY
        return jwt.encode(claims, pem, "RS256", {"kid": jwk.JWK.from_pem(pem.encode()).thumbprint()})

    def sign_for_all(instance: Any, **_: Any) -> None:
        instance.algorithm = instance.algorithm or "RS256"

    @csrf_exempt
    def person(request: HttpRequest) -> JsonResponse:
        asked = json.loads(request.body)
        user, _ = User.objects.get_or_create(username=asked["name"])
        user.set_password(PASSWORD)
        user.save()
        user.groups.set([Group.objects.get_or_create(name=each)[0] for each in asked["groups"]])
        return JsonResponse({"subject": str(user.pk)})

    @csrf_exempt
    def client(request: HttpRequest) -> JsonResponse:
        asked = json.loads(request.body)
        Application.objects.filter(client_id=asked["client_id"]).delete()
        Application.objects.create(
            client_id=asked["client_id"],
            client_secret=asked["secret"],
            client_type="confidential" if asked["secret"] else "public",
            authorization_grant_type=(
                "urn:ietf:params:oauth:grant-type:device_code" if asked["device"] else "authorization-code"
            ),
            redirect_uris=" ".join(asked["redirects"]),
            skip_authorization=True,
        )
        return JsonResponse({})

    pre_save.connect(sign_for_all, Application, weak=False)  # also for clients that register themselves

    class Metadata(ConnectDiscoveryInfoView):  # type: ignore[misc]
        """The metadata, which in this version of the library lacks the endpoint for codes of devices."""

        def get(self, request: HttpRequest, *arguments: Any, **named: Any) -> JsonResponse:
            found = json.loads(super().get(request, *arguments, **named).content)
            return JsonResponse(found | {"device_authorization_endpoint": f"{found['issuer']}/device-authorization/"})

    addresses = [
        path(".well-known/openid-configuration", Metadata.as_view()),
        path("login", views.LoginView.as_view(), name="login"),
        path("control/person", person),
        path("control/client", client),
        path("", include("oauth2_provider.urls")),
    ]
    here = sys.modules[__name__]
    for name, value in {"urlpatterns": addresses, "validator": Validator, "access_token": access_token}.items():
        setattr(here, name, value)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
