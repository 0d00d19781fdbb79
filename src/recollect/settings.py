"""Every setting once: name, default and help.

Plain pydantic on purpose: pydantic-settings takes four times as long to import, and every command pays for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from recollect.domain import group_roles
from recollect.domain.calendar import machine_zone
from recollect.domain.enums import IndexKind, OnSecret, Retention
from recollect.domain.fields import MAX_DAYS, check_zone
from recollect.domain.lifecycle import LifecycleSettings
from recollect.domain.limits import Defaults, read_limits
from recollect.domain.requests import Caller
from recollect.environment import named, system_user, variables, working_folder
from recollect.errors import InvalidInput, invalid_setting
from recollect.projects import find_project
from recollect.server_url import check_token, parse
from recollect.setting_texts import DATA_FOLDER, IN_FILE, SettingTexts, variable
from recollect.store_folder import DATABASE, folder_of, real_file

_SERVERS: Final = {
    "database_url": ("postgresql",),
    "drill_database_url": ("postgresql",),
    "chroma_url": ("http", "https"),
    "embedding_url": ("http", "https"),
    "chat_url": ("http", "https"),
}

_NOT_WRITTEN: Final = frozenset(
    ("project", "token", "metrics_token", "chat_key", "embedding_key", "oidc_client_secret")
)
_OURS_ELSEWHERE = {"RECOLLECT_TEST_POSTGRES_URL"}

_LONGEST: Final = 60  # characters of a value that an error repeats
_REASONS: Final = {
    "Input should be": "Must be",
    "a valid boolean": "0 or 1",
    "a valid integer": "a whole number",
    "a valid number": "a number",
}


def _project_here(told: dict[str, Any]) -> str:
    try:
        return find_project(working_folder(), told.get("home")).name
    except OSError:  # the working folder is gone, or may not be looked at
        return "default"


def _absolute_path(path: Path) -> Path:
    """Make a path absolute, so that every process means the same one."""
    try:
        known = path.expanduser()
        return known if known.is_absolute() else (working_folder() / known).absolute()
    except (RuntimeError, OSError):
        raise ValueError(f"{path} cannot be made an absolute path") from None


AbsolutePath = Annotated[Path, AfterValidator(_absolute_path)]


class Settings(LifecycleSettings):
    """The settings: arguments win over the environment, where an empty value counts as absent.

    A variable `NAME_FILE` names a file whose first line is the value of `NAME`.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, protected_namespaces=(), defer_build=True
    )

    home: AbsolutePath = Field(default=Path(DATA_FOLDER), description="Data folder: database, vectors, logs.")
    memory_db: AbsolutePath | None = Field(
        default=None,
        description="SQLite file of the store. Default: `memory.db` in the data folder. With another name its lock, "
        "vectors and logs are beside it, in `NAME.files`. A data folder given as an argument comes first.",
    )
    user: str = Field(
        default_factory=system_user,
        description="Who asks. Default: the system's user. With RECOLLECT_URL the token says who asks.",
    )
    team: str = Field(
        default="local",
        description="Team in which you ask. With RECOLLECT_URL, needed only by members of several teams.",
    )
    project: str = Field(
        default_factory=_project_here,
        description="Project in which you ask, such as `github.com/acme/shop`. Default: the one named by `project "
        "set`, else the repository around the working folder, by its remote, else that folder.",
    )
    time_zone: str = Field(
        default="",
        description="Time zone in which your days begin, such as `Europe/Berlin`. Default: that of the machine.",
    )
    model: str = Field(
        default="notes-MiniLM-L6-v2",
        description="Embedding model. The default is in the package; `all-MiniLM-L6-v2`, `all-mpnet-base-v2`, "
        "`paraphrase-multilingual-MiniLM-L12-v2`, any other id of the Hugging Face hub and a local folder need the "
        "extra `models`.",
    )
    models_dir: AbsolutePath | None = Field(
        default=None, description="Folder of model cards and weights. Default: those of Recollect."
    )
    database_url: str = Field(
        default="",
        repr=False,
        description="PostgreSQL of a shared deployment: `postgresql://…`. Default: SQLite in the data folder.",
    )
    embedding_url: str = Field(
        default="",
        repr=False,
        description="Server that embeds by OpenAI's `/v1/embeddings`, in place of a model here: `http://…`.",
    )
    embedding_key: str = Field(default="", repr=False, description="Key for that server.")
    chroma_url: str = Field(
        default="",
        repr=False,
        description="Chroma server of a shared deployment: `http://…`. Default: Chroma in the data folder.",
    )
    drill_database_url: str = Field(
        default="",
        repr=False,
        description="PostgreSQL database into which a backup was restored, for `recollect backup drill --restored`.",
    )
    vector_index: IndexKind = Field(
        default=IndexKind.CHROMA,
        description="What searches the vectors: `chroma`, or `pgvector` in the PostgreSQL of a shared deployment, in "
        "place of a Chroma server.",
    )
    insecure: bool = Field(
        default=False,
        description="Allow plain http to a server on another machine, which shows the token to others.",
    )
    url: str = Field(
        default="",
        description="Server of a team: `https://…`. This machine then uses no store and no daemon of its own.",
    )
    token: str = Field(default="", repr=False, description="Token for that server; it says who asks.")
    on_secret: OnSecret = Field(
        default=OnSecret.BLOCK,
        description="What happens to a write with a secret: `block` refuses it, `redact` masks the secret.",
    )
    retention: Retention = Field(
        default=Retention.KEEP,
        description="How long memories without `ttl_days` are kept: `keep` is for ever; `importance` is importance "
        "(0–1) × 300 days, and longer if a memory is used.",
    )
    max_memories: int = Field(
        default=0,
        ge=0,
        description="Maximum number of memories per person, project or team; the oldest and least used beyond it are "
        "deleted for good. 0: no limit.",
    )
    inbox_days: float = Field(
        default=7.0,
        gt=0,
        le=MAX_DAYS,
        description="Days that a memory may wait in the inbox. Then `doctor` reports a problem and exits with 1, and "
        "`status` and the start of a session say how many wait too long.",
    )
    journal_mirror: AbsolutePath | None = Field(
        default=None, description="File that the journal is also written to, one JSON object a line. Default: none."
    )
    backup_folder: AbsolutePath | None = Field(
        default=None,
        description="Folder of the backups of this store: the receipt of an erasure says which of them still hold what "
        "was erased. Default: none.",
    )
    backup_days: float = Field(
        default=0.0,
        ge=0,
        le=MAX_DAYS,
        description="Days after which a backup is deleted, by whatever deletes it: a receipt says until when a backup "
        "may hold what was erased. 0: not known.",
    )
    daemon: bool = Field(
        default=True,
        description="Share one daemon between all clients of a store; with `0` each command opens the store itself, "
        "and hooks do nothing.",
    )
    rerank: str = Field(
        default="",
        description="Cross-encoder for the best matches: a folder, or `OWNER/NAME@COMMIT` on the Hugging Face hub. "
        "Default: none.",
    )
    max_body_mib: int = Field(default=8, ge=1, le=1_024, description="Largest body of a request, in MiB.")
    requests_per_minute: int = Field(
        default=1_200,
        ge=0,
        description="Requests that one token may send to one worker of a replica in a minute. 0: no limit.",
    )
    limits: str = Field(
        default="",
        description='What each user and each team may hold and ask, as JSON: `{"user": {"memories": 10000, '
        '"requests_minute": 600}, "team": {"memories": 200000, "projects": 200}}`; also `bytes` and '
        "`requests_day`. `recollect limit set` sets others for a user or a team. Default: none.",
    )
    token_days_max: float = Field(
        default=0.0,
        ge=0,
        le=MAX_DAYS,
        description="Most days for which a user may make a token, which then never lasts for good. 0: any number.",
    )
    concurrent_requests: int = Field(
        default=32, ge=1, le=1_000, description="Requests that one replica of the server works on at once."
    )
    metrics_token: str = Field(
        default="", repr=False, description="Token for `/metrics` alone. Default: that of an admin of the deployment."
    )
    public_address: str = Field(
        default="", description="Address by which people reach this server, such as `https://memory.example.com`."
    )
    oidc_issuer: str = Field(
        default="",
        description="Identity provider by which people sign in: the issuer of its tokens, `https://…`. Default: none.",
    )
    oidc_client_id: str = Field(default="", description="Client by which the page signs people in at that provider.")
    oidc_client_secret: str = Field(
        default="", repr=False, description="Secret of that client. Default: none, which is a public client."
    )
    oidc_login_client_id: str = Field(
        default="",
        description="Public client of `recollect login`. Default: that of the page if it has no secret, else none.",
    )
    oidc_audiences: str = Field(
        default="",
        description="Audiences of access tokens that are taken, separated by spaces. Default: "
        "RECOLLECT_PUBLIC_ADDRESS, also with `/mcp` behind it.",
    )
    oidc_scopes: str = Field(default="openid profile", description="Scopes that clients ask that provider for.")
    oidc_subject_claim: str = Field(
        default="sub",
        description="Claim by which a person is known for good, the same for each client; `oid` at Microsoft Entra.",
    )
    oidc_name_claim: str = Field(
        default="preferred_username", description="Claim that holds the name of a user who signs in for the first time."
    )
    oidc_groups_claim: str = Field(default="groups", description="Claim that holds the groups of a person.")
    oidc_groups: str = Field(
        default="",
        description='Roles in teams by group, as JSON: `{"engineers": {"crew": "writer"}}`. Default: none; roles '
        "are then given by hand.",
    )
    chat_model: str = Field(
        default="",
        description="Language model: `openai:NAME`, `anthropic:NAME`, or a name at the server of RECOLLECT_CHAT_URL. "
        "Default: none; nothing is then sent anywhere.",
    )
    chat_url: str = Field(
        default="",
        repr=False,
        description="Server that speaks OpenAI's chat completions, such as `http://127.0.0.1:11434/v1`.",
    )
    chat_key: str = Field(default="", repr=False, description="Key for that server, or for OpenAI or Anthropic.")
    chat_seconds: float = Field(
        default=20.0, gt=0, le=600, description="Seconds one question may take, with its repeats."
    )
    chat_tokens_day: int = Field(
        default=1_000_000,
        ge=0,
        description="Tokens that one store may use in a day (UTC), a fifth of them in an hour.",
    )
    idle_minutes: float = Field(
        default=30.0, gt=0, description="Minutes without a request after which the daemon exits."
    )

    def __init__(self, **values: Any) -> None:
        texts = SettingTexts(values, variables())
        _refuse_files(texts.variables, values)
        try:
            super().__init__(**texts.found(type(self).model_fields) | values)
        except ValidationError as error:
            raise _to_invalid_input(error) from None

    @field_validator("model", "rerank")
    @classmethod
    def _model_folder(cls, model: str) -> str:
        """Make a local folder absolute."""
        path = Path(model)
        local = model.startswith((".", "~", "/")) or len(path.parts) > 2
        return str(_absolute_path(path)) if local else model

    @field_validator("embedding_url", "database_url", "drill_database_url", "chroma_url", "chat_url")
    @classmethod
    def _check_address(cls, url: str, info: ValidationInfo) -> str:
        """Check the address of another server, and name no password in an error."""
        schemes = _SERVERS[str(info.field_name)]
        try:
            known = not url or (urlsplit(url).scheme in schemes and bool(urlsplit(url).netloc))
            _ = urlsplit(url).port  # which raises for one that is no number
        except ValueError:
            known = False
        if known and info.field_name == "chat_url" and urlsplit(url).password:
            raise ValueError("must hold no password: RECOLLECT_CHAT_KEY is the place for a key")
        if not known:
            begin = " or ".join(f"{one}://" for one in schemes)
            raise ValueError(f"must begin with {begin} and name a host; its port, if there is one, is a number")
        return url

    @field_validator("vector_index")
    @classmethod
    def _check_index(cls, kind: IndexKind, info: ValidationInfo) -> IndexKind:
        """Take an index in the database only where there is such a database, and no other index."""
        if kind is IndexKind.PGVECTOR and not info.data.get("database_url"):
            raise ValueError("`pgvector` needs a PostgreSQL, so set RECOLLECT_DATABASE_URL")
        if kind is IndexKind.PGVECTOR and info.data.get("chroma_url"):
            raise ValueError("`pgvector` takes the place of Chroma, so unset RECOLLECT_CHROMA_URL")
        return kind

    @field_validator("url")
    @classmethod
    def _check_server(cls, url: str, info: ValidationInfo) -> str:
        """Check the address of a team's server, to which a token may be sent."""
        return parse(url, insecure=bool(info.data.get("insecure"))).name if url else ""

    @field_validator("public_address", "oidc_issuer")
    @classmethod
    def _of_sign_in(cls, url: str, info: ValidationInfo) -> str:
        """Take addresses to which and from which credentials may be sent; an issuer is compared letter by letter."""
        known = parse(url, insecure=bool(info.data.get("insecure"))) if url else None
        return known.name if known is not None and info.field_name == "public_address" else url

    @field_validator("oidc_groups")
    @classmethod
    def _check_groups(cls, text: str) -> str:
        group_roles.read(text)
        return text

    @field_validator("limits")
    @classmethod
    def _check_limits(cls, text: str) -> str:
        read_limits(text)
        return text

    @field_validator("token")
    @classmethod
    def _check_credential(cls, token: str) -> str:
        return check_token(token)

    @field_validator("time_zone")
    @classmethod
    def _check_zone(cls, name: str) -> str:
        return check_zone(name)

    @field_validator("memory_db")
    @classmethod
    def _check_file(cls, database: Path | None) -> Path | None:
        if database is not None and database.is_dir():
            raise ValueError(f"{database} is a folder")
        return database

    @field_validator("models_dir")
    @classmethod
    def _check_folder(cls, folder: Path | None) -> Path | None:
        """Check that a folder of models exists: a mistyped name must not fall back in silence."""
        if folder is not None and not folder.is_dir():
            raise ValueError(f"{folder} is not a folder")
        return folder

    @property
    def folder(self) -> Path:
        """Return the folder of the store's files as an absolute path: by default the data folder."""
        return Path(folder_of(str(self._database_file)))

    @property
    def database(self) -> Path:
        """Return the SQLite file of a local store, or what a link in its place leads to."""
        return Path(real_file(str(self._database_file)))

    @property
    def _database_file(self) -> Path:
        return self.memory_db or self.home / DATABASE

    @property
    def store_name(self) -> str:
        """Return where the store is, without a password: its database and host, or its file or folder."""
        parts = urlsplit(self.database_url)
        return (
            f"{parts.path.lstrip('/')} on {parts.hostname}" if self.database_url else str(self.memory_db or self.home)
        )

    @property
    def shares_vectors(self) -> bool:
        """Say whether the vector index is on a server, where several processes may use it at once."""
        return bool(self.chroma_url) or self.vector_index is IndexKind.PGVECTOR

    @property
    def lifecycle(self) -> LifecycleSettings:
        """Return the settings that the files of a project may change, as they are without those."""
        return LifecycleSettings(**{name: getattr(self, name) for name in LifecycleSettings.model_fields})

    @property
    def default_limits(self) -> Defaults:
        """Return what each user and each team may hold and ask, unless an admin has set another limit."""
        return read_limits(self.limits)

    @property
    def caller(self) -> Caller:
        """Return who speaks when a door knows nobody else."""
        return Caller(user=self.user, team=self.team, project=self.project, zone=self.time_zone or machine_zone())


def _refuse_files(texts: Mapping[str, str], values: Collection[str]) -> None:
    """Raise `InvalidInput` for a setting in a file that tells nothing, as another store would be opened without it.

    What stands in `values`, as an argument, is not looked for in a file.
    """
    for name in Settings.model_fields:
        if name in values:
            continue
        plain = variable(name)
        if path := texts.get(file_variable := plain + IN_FILE):
            why = f"{plain} is set too" if plain in texts else f"{path} holds nothing that can be read"
            raise invalid_setting(name, file_variable, why)


def hidden() -> frozenset[str]:
    """Return the names of the settings that may hold a secret: none stands in what other users can see."""
    return frozenset(name for name, field in Settings.model_fields.items() if not field.repr)


def variables_of(settings: Settings) -> dict[str, str]:
    """Return the variables that make the settings which were given, for files and commands of other programs.

    The project is left out, which each folder has, and so are tokens and keys.
    """
    given = sorted(settings.model_fields_set - _NOT_WRITTEN)
    return {variable(name): _as_text(getattr(settings, name)) for name in given}


def unknown_variables() -> list[str]:
    """Return the names in the environment that look like settings of ours and are none."""
    known = {variable(name) for name in Settings.model_fields}
    return sorted(name for name in variables() if name not in known | _OURS_ELSEWHERE)


def others_folder(name: str) -> Path | None:
    """Return the folder that another program's variable names, None where it names none."""
    text = named(name).strip()
    return Path(text) if Path(text).is_absolute() else None


def _as_text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _to_invalid_input(error: ValidationError) -> InvalidInput:
    """Return the first error of the validation as ours, with the variable of the setting and the reason."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "settings"
    reason = first["msg"].removeprefix("Value error, ").partition(", unable to ")[0]
    for theirs, ours in _REASONS.items():
        reason = reason.replace(theirs, ours)
    field = Settings.model_fields.get(name)
    if first["type"] != "value_error" and field is not None and field.repr:  # else it names the value, or may not
        reason = f"{reason}, not `{str(first['input'])[:_LONGEST]}`"
    return invalid_setting(name, variable(name), reason)
