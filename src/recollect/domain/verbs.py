"""The signature of every verb: its name, its request, its answer, and what it does to the store.

Doors and clients project these tables; `doors/operations.py` and `auth/administration.py` say what runs each verb.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from recollect.domain.accounts import (
    AcceptInvitation,
    AddProject,
    AddTeam,
    AddToken,
    AddUser,
    Audit,
    AuditPage,
    ChangeUser,
    Done,
    GrantProject,
    GrantTeam,
    InviteUser,
    IssuedToken,
    ListProjects,
    ListTeams,
    ListTokens,
    ListUsers,
    Projects,
    RevokeProject,
    RevokeTeam,
    RevokeToken,
    Teams,
    Tokens,
    Users,
)
from recollect.domain.compact import CompactRecalled
from recollect.domain.fields import Request
from recollect.domain.lifecycle import (
    CheckpointSession,
    CorrectObservation,
    EndSession,
    Injection,
    ListSessions,
    Noted,
    SessionList,
    ShownSession,
    ShowSession,
    StartSession,
    SubmitPrompt,
    UseTool,
)
from recollect.domain.requests import (
    ByConcept,
    ByFile,
    CompactQuery,
    Draft,
    FactQuery,
    FindSimilar,
    Forget,
    ForPrompt,
    Get,
    Inspect,
    Listing,
    MemoryRecall,
    MemoryRemember,
    MemoryStore,
    Purge,
    Query,
    ReadAccess,
    Rescan,
    Restore,
    SoftForget,
    StoreFact,
    Summarize,
    Timeline,
    Update,
)
from recollect.domain.results import (
    Check,
    FactsFound,
    JournalEntry,
    Listed,
    Memory,
    Outcome,
    Prompt,
    Purged,
    Recalled,
    Rescanned,
    Similar,
    Stats,
    Summarized,
)
from recollect.domain.transfer import ExportPage, Extracted, ExtractMemories, ImportBatch, Imported, Page


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb. A `destructive` one takes something away; one more call of an `idempotent` one changes nothing more.

    What runs a verb that `writes` also takes `request_id`, under which a retry gets the first answer again.
    """

    name: str
    request: type[Request]
    answer: Any
    writes: bool = False
    destructive: bool = False
    idempotent: bool = False


VERBS: Final = (
    Verb("remember", Draft, Outcome, writes=True),
    Verb("recall", Query, Recalled),
    Verb("recall_compact", CompactQuery, CompactRecalled),
    Verb("forget", Forget, Outcome, writes=True, destructive=True, idempotent=True),
    Verb("store_memory", Draft, Outcome, writes=True),
    Verb("search_memories", Query, Recalled),
    Verb("list_memories", Listing, Listed),
    Verb("get_memory", Get, Memory),
    Verb("update_memory", Update, Outcome, writes=True, destructive=True, idempotent=True),
    Verb("delete_memory", Forget, Outcome, writes=True, destructive=True, idempotent=True),
    Verb("search_by_file", ByFile, Listed),
    Verb("search_by_concept", ByConcept, Listed),
    Verb("get_timeline", Timeline, Listed),
    Verb("store_fact", StoreFact, Outcome, writes=True),
    Verb("query_facts", FactQuery, FactsFound),
    Verb("forget_fact", Forget, Outcome, writes=True, destructive=True, idempotent=True),
    Verb("purge_expired", Purge, Purged, writes=True, destructive=True, idempotent=True),
    Verb("summarize_old", Summarize, Summarized, writes=True, idempotent=True),
    Verb("memory_store", MemoryStore, Outcome, writes=True),
    Verb("memory_recall", MemoryRecall, Recalled),
    Verb("memory_forget", SoftForget, Outcome, writes=True, destructive=True, idempotent=True),
    Verb("memory_remember", MemoryRemember, Outcome, writes=True),
    Verb("restore", Restore, Outcome, writes=True, idempotent=True),
    Verb("find_similar", FindSimilar, list[Similar]),
    Verb("format_for_prompt", ForPrompt, Prompt),
    Verb("history", Get, list[JournalEntry]),
    Verb("rescan", Rescan, Rescanned, writes=True, destructive=True, idempotent=True),
    Verb("stats", ReadAccess, Stats),
    Verb("doctor", Inspect, list[Check]),
    Verb("import_batch", ImportBatch, Imported, writes=True, destructive=True, idempotent=True),
    Verb("export_page", ExportPage, Page),
    Verb("extract_memories", ExtractMemories, Extracted, writes=True, idempotent=True),
    Verb("session_start", StartSession, Noted, writes=True, idempotent=True),
    Verb("prompt_submit", SubmitPrompt, Injection, writes=True, idempotent=True),
    Verb("tool_post", UseTool, Noted, writes=True, idempotent=True),
    Verb("session_checkpoint", CheckpointSession, Noted, writes=True, idempotent=True),
    Verb("session_end", EndSession, Noted, writes=True, idempotent=True),
    Verb("list_sessions", ListSessions, SessionList),
    Verb("show_session", ShowSession, ShownSession),
    Verb("correct_observation", CorrectObservation, Noted, writes=True, destructive=True, idempotent=True),
)
BY_NAME: Final = {verb.name: verb for verb in VERBS}

PARTS: Final = {
    "answer_prompt": Verb("answer_prompt", SubmitPrompt, Injection),
    "note_prompt": Verb("note_prompt", SubmitPrompt, Noted),
}
"""The two parts of `prompt_submit`, which the daemon runs apart, so that a coding agent waits for the first alone."""

ADMIN: Final = (
    Verb("add_user", AddUser, IssuedToken),
    Verb("invite_user", InviteUser, IssuedToken, destructive=True),
    Verb("add_team", AddTeam, Done),
    Verb("add_token", AddToken, IssuedToken),
    Verb("accept_invitation", AcceptInvitation, IssuedToken),
    Verb("disable_user", ChangeUser, Done, destructive=True, idempotent=True),
    Verb("enable_user", ChangeUser, Done, idempotent=True),
    Verb("grant_team", GrantTeam, Done, idempotent=True),
    Verb("revoke_team", RevokeTeam, Done, idempotent=True),
    Verb("add_project", AddProject, Done, idempotent=True),
    Verb("grant_project", GrantProject, Done, idempotent=True),
    Verb("revoke_project", RevokeProject, Done, idempotent=True),
    Verb("revoke_token", RevokeToken, Done, idempotent=True),
    Verb("list_users", ListUsers, Users, idempotent=True),
    Verb("list_teams", ListTeams, Teams, idempotent=True),
    Verb("list_projects", ListProjects, Projects, idempotent=True),
    Verb("list_tokens", ListTokens, Tokens, idempotent=True),
    Verb("audit", Audit, AuditPage, idempotent=True),
)
"""The verbs of administration, which a person's rights decide on instead of a caller's."""
ADMIN_BY_NAME: Final = {verb.name: verb for verb in ADMIN}
