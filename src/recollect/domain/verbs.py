"""The signature of every verb: its name, its request, its answer, and what it does to the store.

Doors and clients project these tables; `doors/handlers.py` and `auth/administration.py` say what runs each verb.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from pydantic.fields import FieldInfo

from recollect.domain import accounts, compact, leaving, lifecycle, limits, requests, results, review, transfer
from recollect.domain.fields import Request, unknown_name
from recollect.errors import InvalidInput


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

    @property
    def fields(self) -> dict[str, FieldInfo]:
        """Return the fields that a caller may set; `source` is not among them, as the store knows it."""
        hidden = "source" if self.request is requests.Draft else ""
        return {name: field for name, field in self.request.model_fields.items() if name != hidden}

    def check(self, names: Collection[str]) -> None:
        """Raise `InvalidInput` for a name that is no field of the request, or that no caller may set."""
        if name := next((field for field in names if field not in self.fields), ""):
            if name in self.request.model_fields:
                raise InvalidInput(name, f"Invalid {name}: It cannot be given; the store knows how a memory came in")
            raise InvalidInput(name, unknown_name("parameter", name, self.fields))


VERBS: Final = (
    Verb("remember", requests.Draft, results.Outcome, writes=True),
    Verb("recall", requests.Query, results.Recalled),
    Verb("recall_compact", requests.CompactQuery, compact.CompactRecalled),
    Verb("forget", requests.Forget, results.Outcome, writes=True, destructive=True, idempotent=True),
    Verb("store_memory", requests.Draft, results.Outcome, writes=True),
    Verb("search_memories", requests.SearchMemories, results.Recalled),
    Verb("list_memories", requests.Listing, results.Listed),
    Verb("get_memory", requests.Get, results.Memory),
    Verb("update_memory", requests.Update, results.Outcome, writes=True, destructive=True, idempotent=True),
    Verb("delete_memory", requests.Forget, results.Outcome, writes=True, destructive=True, idempotent=True),
    Verb("search_by_file", requests.ByFile, results.Listed),
    Verb("search_by_concept", requests.ByConcept, results.Listed),
    Verb("get_timeline", requests.Timeline, results.Listed),
    Verb("store_fact", requests.StoreFact, results.Outcome, writes=True),
    Verb("query_facts", requests.FactQuery, results.FactsFound),
    Verb("forget_fact", requests.Forget, results.Outcome, writes=True, destructive=True, idempotent=True),
    Verb("purge_expired", requests.Purge, results.Purged, writes=True, destructive=True, idempotent=True),
    Verb("summarize_old", requests.Summarize, results.Summarized, writes=True, idempotent=True),
    Verb("memory_store", requests.MemoryStore, results.Outcome, writes=True),
    Verb("memory_recall", requests.MemoryRecall, results.Recalled),
    Verb("memory_forget", requests.SoftForget, results.Outcome, writes=True, destructive=True, idempotent=True),
    Verb("memory_remember", requests.MemoryRemember, results.Outcome, writes=True),
    Verb("restore", requests.Restore, results.Outcome, writes=True, idempotent=True),
    Verb("pin", requests.Mark, results.Outcome, writes=True, idempotent=True),
    Verb("unpin", requests.Mark, results.Outcome, writes=True, idempotent=True),
    Verb("bury", requests.Mark, results.Outcome, writes=True, idempotent=True),
    Verb("unbury", requests.Mark, results.Outcome, writes=True, idempotent=True),
    Verb("move_memory", requests.Move, results.Outcome, writes=True),
    Verb("promote", requests.Promote, results.Outcome, writes=True),
    Verb("find_similar", requests.FindSimilar, list[results.Similar]),
    Verb("format_for_prompt", requests.ForPrompt, results.Prompt),
    Verb("history", requests.Get, list[results.JournalEntry]),
    Verb("rescan", requests.Rescan, review.Rescanned, writes=True, destructive=True, idempotent=True),
    Verb("inbox", review.Inbox, review.WaitingPage),
    Verb("decide", review.Decide, results.Outcome, writes=True, destructive=True, idempotent=True),
    Verb("source_rules", review.SourceRules, review.SourceRulePage),
    Verb(
        "drop_source_rule",
        review.DropSourceRule,
        review.SourceRuleDropped,
        writes=True,
        destructive=True,
        idempotent=True,
    ),
    Verb("withdraw", review.Withdraw, review.Withdrawn, writes=True, destructive=True, idempotent=True),
    Verb("undo_withdrawal", review.UndoWithdrawal, review.Withdrawn, writes=True, idempotent=True),
    Verb("stats", requests.ReadAccess, results.Stats),
    Verb("count_projects", accounts.CountProjects, accounts.ProjectCounts),
    Verb("doctor", requests.Inspect, list[results.Check]),
    Verb("import_batch", transfer.ImportBatch, transfer.Imported, writes=True, destructive=True, idempotent=True),
    Verb("export_page", transfer.ExportPage, transfer.Page),
    Verb("extract_memories", transfer.ExtractMemories, transfer.Extracted, writes=True, idempotent=True),
    Verb("session_start", lifecycle.StartSession, lifecycle.Noted, writes=True, idempotent=True),
    Verb("prompt_submit", lifecycle.SubmitPrompt, lifecycle.Injection, writes=True, idempotent=True),
    Verb("tool_post", lifecycle.UseTool, lifecycle.Noted, writes=True, idempotent=True),
    Verb("session_checkpoint", lifecycle.CheckpointSession, lifecycle.Noted, writes=True, idempotent=True),
    Verb("session_end", lifecycle.EndSession, lifecycle.Noted, writes=True, idempotent=True),
    Verb("list_sessions", lifecycle.ListSessions, lifecycle.SessionList),
    Verb("show_session", lifecycle.ShowSession, lifecycle.ShownSession),
    Verb(
        "correct_observation",
        lifecycle.CorrectObservation,
        lifecycle.Noted,
        writes=True,
        destructive=True,
        idempotent=True,
    ),
)
BY_NAME: Final = {verb.name: verb for verb in VERBS}

PARTS: Final = {
    "answer_prompt": Verb("answer_prompt", lifecycle.SubmitPrompt, lifecycle.Injection),
    "note_prompt": Verb("note_prompt", lifecycle.SubmitPrompt, lifecycle.Noted),
    "answer_start": Verb("answer_start", lifecycle.StartSession, lifecycle.Injection),
    "answer_before_tool": Verb("answer_before_tool", lifecycle.BeforeTool, lifecycle.Injection),
    "answer_tool": Verb("answer_tool", lifecycle.UseTool, lifecycle.Injection),
    "answer_turn": Verb("answer_turn", lifecycle.EndTurn, lifecycle.Injection),
    "note_turn": Verb("note_turn", lifecycle.EndTurn, lifecycle.Noted),
    "note_shown": Verb("note_shown", lifecycle.NoteShown, lifecycle.Noted),
}
"""The parts of an event that the daemon runs apart, so that a coding agent waits for nothing but memories."""

ADMIN: Final = (
    Verb("add_user", accounts.AddUser, accounts.IssuedToken),
    Verb("invite_user", accounts.InviteUser, accounts.IssuedToken, destructive=True),
    Verb("link_user", accounts.LinkUser, accounts.Done, idempotent=True),
    Verb("add_team", accounts.AddTeam, accounts.Done),
    Verb("add_token", accounts.AddToken, accounts.IssuedToken),
    Verb("accept_invitation", accounts.AcceptInvitation, accounts.IssuedToken),
    Verb("disable_user", accounts.ChangeUser, accounts.Done, destructive=True, idempotent=True),
    Verb("enable_user", accounts.ChangeUser, accounts.Done, idempotent=True),
    Verb("grant_team", accounts.GrantTeam, accounts.Done, idempotent=True),
    Verb("revoke_team", accounts.RevokeTeam, accounts.Done, idempotent=True),
    Verb("add_project", accounts.AddProject, accounts.Done, idempotent=True),
    Verb("grant_project", accounts.GrantProject, accounts.Done, idempotent=True),
    Verb("revoke_project", accounts.RevokeProject, accounts.Done, idempotent=True),
    Verb("revoke_token", accounts.RevokeToken, accounts.Done, idempotent=True),
    Verb("list_users", accounts.ListUsers, accounts.Users, idempotent=True),
    Verb("list_teams", accounts.ListTeams, accounts.Teams, idempotent=True),
    Verb("list_projects", accounts.ListProjects, accounts.Projects, idempotent=True),
    Verb("list_tokens", accounts.ListTokens, accounts.Tokens, idempotent=True),
    Verb("set_limits", limits.SetLimits, accounts.Done, idempotent=True),
    Verb("clear_limits", limits.ClearLimits, accounts.Done, idempotent=True),
    Verb("list_limits", limits.ListLimits, limits.LimitList, idempotent=True),
    Verb("show_limits", limits.ShowLimits, limits.Usage, idempotent=True),
    Verb("audit", accounts.Audit, accounts.AuditPage, idempotent=True),
    Verb("export_audit", accounts.ExportAudit, accounts.AuditExport, idempotent=True),
    Verb("delete_user", leaving.DeleteUser, leaving.Departure, destructive=True, idempotent=True),
    Verb("list_receipts", leaving.ListReceipts, leaving.Receipts, idempotent=True),
    Verb("export_user", leaving.ExportUser, transfer.Page, idempotent=True),
    Verb("set_hold", leaving.SetHold, accounts.Done),
    Verb("list_holds", leaving.ListHolds, leaving.Holds, idempotent=True),
    Verb("release_hold", leaving.ReleaseHold, accounts.Done),
    Verb("set_retention", leaving.SetRetention, leaving.RetentionSet, destructive=True, idempotent=True),
    Verb("list_retention", leaving.ListRetention, leaving.RetentionRules, idempotent=True),
    Verb("drop_retention", leaving.DropRetention, accounts.Done),
)
"""The verbs of administration, which a person's rights decide on instead of a caller's."""
ADMIN_BY_NAME: Final = {verb.name: verb for verb in ADMIN}
