"""Prints the answers of verbs for people: one printer for each type of answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from recollect.domain import accounts, lifecycle, results
from recollect.domain.accounts import AuditLine, AuditPage, Projects, Teams, Tokens, Users
from recollect.domain.compact import quoted_text
from recollect.domain.enums import Certainty, Layer
from recollect.domain.lifecycle import Decision, SessionList, SessionSummary, ShownObservation, ShownSession
from recollect.domain.limits import LimitList, Usage
from recollect.domain.origin import Authority
from recollect.domain.review import Rescanned
from recollect.doors.cli.receipts import ANSWERS, print_leaving
from recollect.doors.cli.render import err, out, page_line, print_fields, print_line, print_rows, sanitized
from recollect.doors.cli.terminal import stdout
from recollect.prompt.neutral import neutral_json

_LAYERS: Final = ("title", "abstract", "overview")
_CHANGED: Final = ("importance", "confidence", "trust", "fact_type", "type")
"""The fields of which the journal has both values."""
_LINKS: Final = {
    "superseded_by": "replaced by memory {}",
    "merged_into": "merged into memory {}",
    "kept_as": "the earlier text is memory {}",
    "standing": "{}",
}
_QUOTED: Final = 60  # characters of a text in a line of the history
_STYLES: Final[dict[str, str]] = {Decision.KEPT: "green", Decision.DROPPED: "dim", Decision.REFUSED: "yellow"}
_CLOSEST: Final = "Closest, but probably not relevant"
_COLUMNS: Final = ("no", "time", "tool", "became", "why", "score", "memory id", "what it says")


def print_answer(result: Any, offset: int = 0, *, why: bool = False) -> None:
    """Print the answer of an operation; `offset` is the start of a page, `why` adds the parts of scores."""
    match result:
        case results.Recalled():
            _print_recalled(result, why=why)
        case results.Outcome():
            message, *notes = result.sentences("--supersedes")
            print_line(message, "yellow" if result.status is results.WriteStatus.NOT_FOUND else "green")
            for note in notes:
                print_line(note)
        case results.Listed():
            print_memories(result.memories)
            print_line(_page_line(result, offset))
            _print_notes(result.notes)
        case results.FactsFound():
            _print_facts(result)
            print_line(page_line(len(result.facts), result.total, offset))
        case accounts.ProjectCounts():
            rows = [[row.project, f"{row.memories}", "this one" if row.here else ""] for row in result.projects]
            print_rows(rows, "project", "memories", "", empty="No project holds memories that you may read.")
        case results.Stats():
            _print_stats(result)
            _print_notes(result.notes)
        case Rescanned():  # where secrets are stored and of which kinds, never what they are
            rows = [[secret.what, str(secret.id), secret.field, ", ".join(secret.kinds)] for secret in result.exposed]
            print_rows(rows, "what", "id", "field", "kinds")
            print_line(result.message, "yellow" if result.exposed else "green")
        case results.Prompt():
            stdout().write(result.text and f"{result.text}\n")  # for pipes: no colours, no folding
        case results.Purged() | results.Summarized():
            print_line(result.message, "")
        case lifecycle.SessionList():
            _print_sessions(result, offset)
        case lifecycle.ShownSession():
            _print_session(result, offset)
        case _ if type(result) in _ADMINISTERED:
            _ADMINISTERED[type(result)](result)
        case accounts.IssuedToken():
            err.print(sanitized(result.message), markup=False, highlight=False, soft_wrap=True)
            out.print(result.token, markup=False, highlight=False, soft_wrap=True)
        case accounts.Done():
            out.print(sanitized(result.message), markup=False, highlight=False, soft_wrap=True)
        case []:
            print_line("No similar memory found.")
        case _:
            similar: Sequence[results.Similar] = result
            _print_table([near.memory for near in similar], "cosine", [f"{near.cosine:.2f}" for near in similar])


def in_commands(outcome: results.Outcome) -> results.Outcome:
    """Return the outcome with `undo` in its notes, the command for what other doors call `restore`."""
    undo = f"`recollect undo {outcome.id}` brings"
    return replace(
        outcome,
        notes=tuple(
            note.replace("`restore` brings", undo).replace("`find_similar`", "`recollect similar`")
            for note in outcome.notes
        ),
    )


def print_memory(body: dict[str, Any], history: Sequence[dict[str, Any]]) -> None:
    """Print one memory: its text, its other fields but for layers that only repeat the text, and its history."""
    repeated = {name for name in _LAYERS if body.get(name) == body["content"]}
    first = {"content": body["content"]}
    print_fields({name: _stats_value(value) for name, value in (first | body).items() if name not in repeated})
    rows = [[line["at"], line["actor"], _journal_change(line)] for line in history]
    print_rows(rows, "when", "who", "what happened", title="History")


def _journal_change(line: Mapping[str, Any]) -> str:
    """Return a journal line as text: each changed field, with old and new value where both are known."""
    fields = line.get("fields", ())
    both = {name: line[name] for name in ("content", *_CHANGED) if name in line}
    parts = [f"{name} {' → '.join(map(_short_value, both[name]))}" for name in both]
    parts += [str(name) for name in fields if name not in both]
    parts += [form.format(line[name]) for name, form in _LINKS.items() if line.get(name)]
    return f"{line['action']}: {', '.join(parts)}" if parts else str(line["action"])


def _short_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    text = str(value)
    return f"“{text[:_QUOTED].rstrip()}{'…' * (len(text) > _QUOTED)}”" if " " in text else text


def with_contents(body: dict[str, Any], found: results.Listed) -> dict[str, Any]:
    """Return the JSON of a list with the whole text of each memory."""
    texts = (neutral_json({"content": memory.content}) for memory in found.memories)
    return body | {"memories": [line | text for line, text in zip(body["memories"], texts, strict=True)]}


def print_checks(found: Sequence[results.Check]) -> None:
    """Print the doctor's report, with advice under each problem."""
    rows: list[list[str | Text]] = []
    for check in found:
        mark = Text("✓", style="green") if check.well else Text("✗", style="red")
        seen = sanitized(check.seen)
        problem = Text.assemble((seen, "red"), "\n", sanitized(check.advice))
        rows.append([mark, Text(check.name, style="bold", no_wrap=True), seen if check.well else problem])
    print_rows(rows)


def print_status(body: dict[str, Any]) -> None:
    """Print the status that a running daemon reports."""
    print_fields(
        {
            "process": f"{body['pid']} (recollect {body['version']}), since {body['since']}",
            "listens on": body["socket"] or f"127.0.0.1:{body['port']}",
            "MCP over HTTP": body["url"] or "off; `recollect serve --port 8765` turns it on",
            **({"token": "`recollect status --token` prints it"} if body["url"] else {}),
            "memory": f"{body['memory_bytes'] / 1e6:.0f} MB",
            "model": body["model"],
            "vector index": body["vector_index"],
            "hooks": f"{body.get('events_waiting', 0)} events wait, {body.get('events_lost', 0)} were lost",
            **({"inbox": body["inbox"]} if "inbox" in body else {}),
            **({"agents": body["remembered"]} if body.get("remembered") else {}),
            "requests": f"{body['requests']}, the last one {body['idle_seconds']:.0f} s ago",
        }
    )


def _page_line(found: results.Listed, offset: int) -> str:
    """Return the line that names the part of a list on this page, and the offset of the next page."""
    line = page_line(len(found.memories), found.total, offset)
    return f"{line.partition('.')[0]}. More: add `--after {found.after}`." if found.after else line


def _print_recalled(found: results.Recalled, *, why: bool) -> None:
    """Print the index if there is any, then each likely hit, a long text by its passage, and how it was found.

    Each weak hit, which seldom answers, gets a line; with `why` it is printed like the others.
    """
    if found.index is not None:
        rows = [[str(line.id), f"{line.match:.0%}", line.abstract] for line in found.index.lines]
        print_rows(rows, "id", "sure", "memory", title="Index")
    likely = [hit for hit in found.hits if hit.certainty is not Certainty.WEAK]
    weak = [hit for hit in found.hits if hit.certainty is Certainty.WEAK]
    long = [found.index is None and bool(hit.passage) for hit in likely]
    for hit, cut in zip(likely, long, strict=True):
        older = [str(other.memory.id) for other in likely if other.older_than == hit.memory.id]
        _print_hit(replace(hit, layer=Layer.PASSAGE) if cut else hit, older, why=why)
    print_line(found.message if found.index is not None else results.found_message(len(likely)))
    _print_closest(weak or ([found.nearest] if found.nearest is not None else []), why=why)
    if any(long) or weak:
        print_line("`recollect show ID` shows a memory whole.")
    if found.index is not None and found.index.omitted:
        print_line(f"Without details: {found.index.omitted}. Not even listed: {found.index.unlisted}.")
    _print_notes(found.notes)


def _print_closest(hits: Sequence[results.Hit], *, why: bool) -> None:
    """Print the weak hits of a search, which seldom answer the question."""
    lines = [f"#{hit.memory.id} ({hit.match:.0%})  {sanitized(hit.memory.abstract)}" for hit in hits]
    if why and hits:
        print_line(f"{_CLOSEST}:")
        for hit in hits:
            _print_hit(hit, why=why)
    elif len(lines) == 1:
        print_line(f"{_CLOSEST}: {lines[0]}")
    elif lines:
        print_line("\n  ".join([f"{_CLOSEST}:", *lines]))


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print_line(f"{note} `recall` and `list` look there with `--everywhere`." if results.ELSEWHERE in note else note)


def _print_hit(hit: results.Hit, older_hits: Sequence[str] = (), *, why: bool) -> None:
    """Print a hit: its labels, its match, how it was found, and its text; with `why` the parts of its score."""
    parts = hit.why
    found = ", ".join(parts.pop("found_by"))
    memory = hit.memory
    part = () if hit.layer is Layer.CONTENT else (f"{hit.layer} only",)
    labels = [
        *part,
        str(memory.fact_type),
        str(memory.scope),
        *filter(None, (memory.project, memory.key, memory.category)),
        *memory.tags,
    ]
    label = sanitized(" · ".join(labels))
    older = f"   older than {hit.older_than}" if hit.older_than is not None else ""
    newer = f"   newer than {', '.join(older_hits)}" if older_hits else ""
    denied = f"   may contradict {hit.contradicts}" if hit.contradicts is not None else ""
    origin = "" if memory.authority is Authority.TOLD else f"   from {sanitized(memory.origin)}"
    sure = f"{hit.certainty} ({hit.match:.0%}){newer}{older}{denied}   found by {found or 'meaning'}{origin}"
    if why:
        sure += f"\nscore {hit.score:.2f} = " + " + ".join(f"{name} {value:.2f}" for name, value in parts.items())
    foot = Text(sure, style="dim")
    if out.is_terminal:
        head = f"[bold]{memory.id}[/bold]  [dim]{escape(label)}[/dim]"
        body = Text.assemble(sanitized(quoted_text(hit)), "\n", foot)
        out.print(Panel(body, title=head, title_align="left", border_style="blue"))
    else:
        out.print(Text(f"{memory.id}  {label}\n{sanitized(quoted_text(hit))}"), foot, "", sep="\n", soft_wrap=True)


def _print_table(memories: Sequence[results.Memory], last: str, values: Sequence[str]) -> None:
    """Print memories with their labels, and a last column of `values`."""
    rows: list[list[str | Text]] = []
    for memory, value in zip(memories, values, strict=True):
        labels = [
            str(memory.fact_type),
            str(memory.type or ""),
            memory.project or "",
            memory.category or "",
            *memory.tags,
            *memory.concepts,
        ]
        title, preview = sanitized(memory.title), sanitized(results.preview_of(memory.content))
        text = Text(preview) if memory.title in memory.content else Text.assemble((title, "bold"), " ", (preview, ""))
        rows.append([str(memory.id), text, " · ".join(filter(None, labels)), value])
    print_rows(rows, "id", "memory", "labels", last)


def print_memories(found: Sequence[results.Memory]) -> None:
    """Print memories, each with its labels and the day of its last change."""
    _print_table(found, "changed", [memory.updated_at.date().isoformat() for memory in found])


def _print_facts(found: results.FactsFound) -> None:
    """Print facts as a table with the time in which each holds."""
    rows = []
    for fact in found.facts:
        end = fact.valid_to.date().isoformat() if fact.valid_to else ""
        holds = f"{fact.valid_from.date().isoformat()} – {end}"
        rows.append(
            [str(fact.id), fact.subject, fact.predicate, fact.object, f"{fact.confidence:.2f}", holds, fact.origin]
        )
    print_rows(rows, "id", "subject", "predicate", "object", "sure", "holds", "said by")


def _print_stats(counted: results.Stats) -> None:
    """Print the counts of memories and facts, and the tokens that language models used."""
    span = [at.date().isoformat() for at in (counted.oldest_at, counted.newest_at) if at is not None]
    groups = {
        "by scope": counted.by_scope,
        "by kind": counted.by_fact_type,
        "by type": counted.by_type,
        "by category": counted.by_category,
    }
    fields = {"memories": f"{counted.memories}" + (f", {' – '.join(span)}" if span else "")}
    fields |= {
        name: ", ".join(f"{key} {count}" for key, count in group.items()) for name, group in groups.items() if group
    }
    fields["facts"] = f"{counted.facts}, ended ones too"
    fields["not shown"] = (
        f"{counted.superseded} superseded, {counted.merged} merged, {counted.deleted} hidden, {counted.expired} expired"
    )
    if used := counted.model_tokens:
        spent = f"{used['hour']} tokens this hour, {used['day']} today"
        fields["language model"] = f"{used['questions']} questions, {spent}"
    print_fields(fields)


def _stats_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_stats_value, value))
    return f"{value['entity']} ({value['entity_type']})" if isinstance(value, dict) else str(value)


def _print_sessions(found: SessionList, offset: int) -> None:
    """Print a page of sessions as a table."""
    rows = [
        [
            row.session_id,
            row.agent,
            _to_the_minute(row.started_at),
            _end_of_session(row),
            str(row.kept),
            str(row.dropped),
        ]
        for row in found.sessions
    ]
    print_rows(rows, "session", "agent", "began", "ended", "kept", "dropped")
    print_line(page_line(len(rows), found.total, offset))


def _print_session(found: ShownSession, offset: int) -> None:
    """Print a session: its head, its observations, its new topics and the stages that failed."""
    session = found.session
    lasted = f"{_to_the_minute(session.started_at)} – {_end_of_session(session)} (UTC)"
    counts = f"{session.kept} kept, {session.dropped} dropped"
    fields = {"session": session.session_id, "agent": session.agent, "time": lasted, "observations": counts}
    print_fields({name: value for name, value in fields.items() if value})
    if out.is_terminal:
        print_rows(
            [_observation_row(each) for each in found.observations], "no", "time", "tool", "became", "what it says"
        )
    else:
        print_rows([_observation_detail(each) for each in found.observations], *_COLUMNS)
    print_rows([[line] for line in found.boundaries], title="New topics, with their first words")
    for stage, count in found.failures.items():
        times = "once" if count == 1 else f"{count} times"
        print_line(f"The stage {stage} failed {times}; the log of the daemon says why.", "yellow")
    print_line(page_line(len(found.observations), found.total, offset))


def _observation_row(row: ShownObservation) -> list[str | Text]:
    """Return the row of an observation: a kept observation names its memory; a dropped observation its first reason."""
    kept = row.decision == Decision.KEPT
    became = f"{row.decision} {row.memory_id}" if kept else row.decision
    why = "" if kept else row.reason.partition(",")[0] + " · " * bool(row.summary)
    summary = Text.assemble((sanitized(why), "dim"), sanitized(row.summary))
    return [
        str(row.number),
        f"{row.at:%H:%M}",
        row.tool or row.event,
        Text(became, style=_STYLES[row.decision]),
        summary,
    ]


def _observation_detail(row: ShownObservation) -> list[str | Text]:
    score = "" if row.score is None else f"{row.score:.2f}"
    first = [str(row.number), f"{row.at:%Y-%m-%d %H:%M}", row.tool or row.event, row.decision, row.reason]
    return [*first, score, row.memory_id or "", row.summary]


def _end_of_session(session: SessionSummary) -> str:
    return _to_the_minute(session.ended_at) if session.ended_at else "goes on"


def _to_the_minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _print_users(found: Users) -> None:
    """Print users with their roles and teams."""
    rows = [
        [
            user.user,
            "admin" if user.admin else "",
            _names_with_roles(user.teams),
            _to_the_day(user.created_at),
            _to_the_day(user.disabled_at),
        ]
        for user in found.users
    ]
    print_rows(
        rows,
        "user",
        "deployment",
        "teams",
        "since",
        "disabled",
        empty="No users yet: `recollect user add NAME` adds one.",
    )


def _print_teams(found: Teams) -> None:
    """Print teams with their members."""
    print_rows(
        [[team.team, _names_with_roles(team.members)] for team in found.teams],
        "team",
        "members",
        empty="No teams yet: `recollect team add NAME` adds one.",
    )


def _print_projects(found: Projects) -> None:
    rows = [
        [row.team, row.project, "private" if row.private else "open", _names_with_roles(row.members)]
        for row in found.projects
    ]
    print_rows(rows, "team", "project", "kind", "roles of its own", empty="No projects are registered.")


def _print_tokens(found: Tokens) -> None:
    """Print tokens with their dates, never the token itself."""
    rows = [
        [token.prefix, token.label, token.role or "all"]
        + [_to_the_day(at) for at in (token.created_at, token.expires_at, token.last_used_at, token.revoked_at)]
        for token in found.tokens
    ]
    print_rows(rows, "prefix", "label", "may", "made", "expires", "last used", "revoked", empty="No tokens.")


def _print_limits(found: LimitList) -> None:
    """Print limits, those in the settings first."""
    rows = [
        [f"{row.kind} {row.name}" if row.name else f"every {row.kind}", row.resource.words, f"{row.most:,}"]
        for row in found.limits
    ]
    print_rows(rows, "whose", "what", "most (0: any number)", empty="No limits are set.")


def _print_usage(found: Usage) -> None:
    """Print what a user and their teams use of their limits."""
    rows = [
        [
            f"{each.kind} {each.name}",
            use.resource.words,
            f"{use.used:,}",
            f"{use.most:,}" if use.most else "",
            f"{use.full_at:%Y-%m-%d %H:%M:%S} UTC" if use.full_at else "",
        ]
        for each in found.holders
        for use in each.uses
    ]
    print_rows(rows, "whose", "what", "used", "limit", "all back at")


def _print_audit(found: AuditPage) -> None:
    """Print a page of the audit log, and how to read further back."""
    rows = [
        [
            f"{row.number}",
            f"{row.at:%Y-%m-%d %H:%M:%S}",
            row.actor,
            row.namespace,
            row.action,
            f"{row.memory_id or ''}",
            _audit_change(row),
        ]
        for row in found.lines
    ]
    print_rows(rows, "no", "time", "who", "where", "did", "memory", "what", empty="Nothing was done yet.")
    if found.before is not None:
        print_line(f"More: `recollect audit --before {found.before}`.")


def _audit_change(line: AuditLine) -> str:
    return _comma_list(
        f"{name.replace('_', ' ')} {_audit_value(value)}".rstrip() for name, value in line.changes.items()
    )


def _audit_value(value: Any) -> str:
    """Return a value of the audit log as people write it: a list with commas, nothing for True."""
    if isinstance(value, dict):
        return _comma_list(f"{name} {_audit_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return _comma_list(map(_audit_value, value))
    return {True: "", False: "no", None: "none"}.get(value, str(value)) if value in (True, False, None) else str(value)


def _names_with_roles(roles: dict[str, Any]) -> str:
    return _comma_list(f"{name} ({role})" for name, role in roles.items())


def _comma_list(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _to_the_day(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d}" if at else ""


_ADMINISTERED: Final[dict[type, Callable[[Any], None]]] = {
    Users: _print_users,
    Teams: _print_teams,
    Projects: _print_projects,
    Tokens: _print_tokens,
    AuditPage: _print_audit,
    LimitList: _print_limits,
    Usage: _print_usage,
    **dict.fromkeys(ANSWERS, print_leaving),
}
