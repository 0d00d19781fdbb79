"""Importing into a real store: once is as good as twice, secrets stay out, and what was changed here is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from file_transfer import export_file, import_file
from recollect import App, Caller, Draft, Forget, Get, Memory, Query, Settings, forget, get_memory, recall, remember
from recollect.domain.enums import OnSecret, Sensitivity
from recollect.domain.requests import FactQuery, Listing, SoftForget, Update
from recollect.domain.search import View
from recollect.domain.transfer import ExportPage, ImportBatch, Imported, ImportFormat
from recollect.errors import InvalidInput, StoreUnusable
from recollect.memory.facts import query_facts
from recollect.memory.forget import memory_forget
from recollect.memory.listing import list_memories
from recollect.memory.reports import history
from recollect.memory.update import update_memory
from recollect.transfer.import_batch import import_batch
from recollect.transfer.import_client import Import
from recollect.transfer.import_paths import find_files
from text_vectors import vectors

pytestmark = pytest.mark.slow

TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
GUIDE = "# Testing\nUse pytest -q.\n\n# Deploying\nFridays only.\n"

Importing = Callable[..., Imported]


@pytest.fixture
def bring(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Importing:
    """Return a function that writes a file to the working folder and imports it."""
    monkeypatch.chdir(tmp_path)

    def importing(name: str, text: str, **options: Any) -> Imported:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return import_file(app, path, ADA, **options)

    return importing


def stored(app: App) -> list[Memory]:
    """Return everything public in the store, in the order of ids."""
    found = list_memories(app, Listing(limit=100), ADA).memories
    return sorted(found, key=lambda memory: memory.id)


def layered(number: int, content: str, /, **changes: Any) -> str:
    line = {"id": f"mem_{number}", "category": "events", "abstract": content[:40], "overview": "", "content": content}
    return json.dumps(line | changes)


def test_imported_sections_are_recalled(app: App, bring: Importing) -> None:
    """What was a section of CLAUDE.md is found by its meaning, marked as imported and as written by the caller."""
    report = bring("CLAUDE.md", GUIDE)
    assert (report.new, report.message) == (2, "Memories: 2 new.")
    (best, *_) = recall(app, Query(query="on which day do we ship?"), ADA).hits
    assert best.memory.content == "# Deploying\n\nFridays only."
    assert (best.memory.source, best.memory.author, best.memory.key) == ("import", "ada", "claude.md#deploying")


def test_twice_is_once(app: App, bring: Importing) -> None:
    """The second import of a file says that nothing is new, and neither memories nor journal change."""
    files = {
        "CLAUDE.md": GUIDE,
        "memories.jsonl": "\n".join(layered(number, f"Event {number} happened.") for number in range(5)),
        "m.json": json.dumps([{"id": "1", "memory": "Likes tea"}, {"id": "2", "memory": "Likes tea", "user_id": "bo"}]),
        "s.json": json.dumps({"memories": [{"content": "x y", "content_hash": "h", "tags": [t]} for t in "ab"]}),
        "memory.json": '{"type":"entity","name":"Ada","entityType":"person","observations":["codes"]}\n'
        '{"type":"relation","from":"Ada","to":"Bo","relationType":"knows"}',
    }
    first = [bring(name, text) for name, text in files.items()]
    assert [one.new for one in first] == [2, 5, 2, 1, 1]
    before, told = stored(app), [history(app, Get(id=str(one.id)), ADA) for one in stored(app)]
    again = [bring(name, text) for name, text in files.items()]
    assert [(one.new, one.updated, one.facts) for one in again] == [(0, 0, 0)] * 5
    assert [one.unchanged for one in again] == [2, 5, 2, 2, 1]
    assert stored(app) == before
    assert [history(app, Get(id=str(one.id)), ADA) for one in before] == told
    assert query_facts(app, FactQuery(history=True), ADA).total == 1


def test_a_changed_file_updates_its_memories(app: App, bring: Importing) -> None:
    """A section that says something else is updated in place, one that is gone is told and stays."""
    bring("CLAUDE.md", GUIDE)
    before = stored(app)
    report = bring("CLAUDE.md", "# Deploying\nMondays too.\n")
    assert (report.new, report.updated, report.unchanged) == (0, 1, 0)
    (gone,) = report.problems
    assert gone.why == f"The section `claude.md#testing` is not in the file any more; memory {before[0].id} stays."
    after = stored(app)
    assert [one.id for one in after] == [one.id for one in before]
    assert after[0] == before[0]
    assert after[1].content == "# Deploying\n\nMondays too."
    (best, *_) = recall(app, Query(query="do we ship on Mondays?"), ADA).hits
    assert best.memory == after[1]
    rows = app.records.candidates(View(namespaces=ADA.namespaces(), now=app.clock()))
    app.records.read_candidates(rows, [after[1].id], ())
    row = rows[after[1].id]
    assert "mondays" in row.words
    assert "friday" not in row.words


def test_two_files_of_one_name_keep_apart(
    app: App, bring: Importing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key begins with the way to the file, in this checkout or in others, so that none overwrites another."""
    texts = {"CLAUDE.md": "Tabs.", "pa/CLAUDE.md": "Spaces.", "pb/CLAUDE.md": "Neither."}
    for folder in ("pa", "pb"):
        (tmp_path / folder / ".git").mkdir(parents=True)
        (tmp_path / folder / ".git" / "HEAD").touch()
    assert [bring(name, f"# Style\n{text}").new for name, text in texts.items()] == [1, 1, 1]
    assert [one.key for one in stored(app)] == [f"{name.lower()}#style" for name in texts]
    monkeypatch.chdir(tmp_path / "pa")
    assert bring("pb/CLAUDE.md", "# Style\nBoth.").new == 1
    assert stored(app)[-1].key == f"{(tmp_path / 'pb/claude.md').as_posix()}#style"[-406:]


def test_what_an_import_overwrites_is_kept(app: App, bring: Importing) -> None:
    """Where a section changed in its file, the file leads, and the earlier text is kept with it."""
    bring("CLAUDE.md", "# Style\nTabs, but spaces in YAML.")
    (one,) = stored(app)
    assert bring("CLAUDE.md", "# Style\nSpaces.").updated == 1
    whole = get_memory(app, Get(id=str(one.id)), ADA)
    assert whole.content == "# Style\n\nSpaces."
    (kept,) = whole.merged_from
    assert get_memory(app, Get(id=str(kept)), ADA).content == "# Style\n\nTabs, but spaces in YAML."
    assert history(app, Get(id=str(one.id)), ADA)[-1].changes["fields"].count("content") == 1


def test_an_import_replaces_nothing_that_a_person_said(app: App, bring: Importing) -> None:
    """Where a person edited a section here, a later version of its file leaves that alone and says so."""
    bring("CLAUDE.md", "# Style\nTabs.")
    (one,) = stored(app)
    update_memory(app, Update(id=str(one.id), content="Tabs, but spaces in YAML."), ADA)
    report = bring("CLAUDE.md", "# Style\nSpaces.")
    assert (report.unchanged, report.updated) == (1, 0)
    assert report.problems[0].why == f"Memory {one.id} was said by a person, which an import does not replace."
    assert get_memory(app, Get(id=str(one.id)), ADA).content == "Tabs, but spaces in YAML."


def test_an_import_that_fails_midway_says_what_it_kept(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of a store that is lost on the way tells how much was written before; a second run does the rest."""
    path = tmp_path / "memories.jsonl"
    path.write_text("\n".join(layered(number, f"It rained on day {number}.") for number in range(5)))
    monkeypatch.setattr("recollect.transfer.import_client._BATCH_ITEMS", 3)
    asked: list[ImportBatch] = []

    def send(batch: ImportBatch) -> Imported:
        asked.append(batch)
        if len(asked) == 2:
            raise StoreUnusable("The disk is full.")
        return import_batch(app, batch, ADA)

    with pytest.raises(StoreUnusable, match=r"The disk is full\. Before that: Memories: 3 new\. Do the same again"):
        Import(send, {}).run(find_files([path]).files, lambda _bytes, _items: None)
    assert len(stored(app)) == 3
    again = import_file(app, path, ADA)
    assert (again.new, again.unchanged) == (2, 3)


def test_another_author_is_a_claim(app: App, bring: Importing) -> None:
    """A file of somebody else comes in as the importer's, names them in a tag, and raises no trust; twice is once."""
    header = {"format": "recollect", "version": 1}
    said = {"id": 5, "content": "Pay by card only.", "trust": 1.0, "source": "tool", "author": "bob", "tags": ["pay"]}
    nameless = {"id": 6, "content": "Pay in cash.", "trust": 0.9}
    mine = {"id": 7, "content": "Pay on time.", "trust": 0.9, "author": "ada", "source": "hook"}
    triple = {"id": 1, "subject": "Bo", "predicate": "pays", "object": "cash", "author": "bob"}
    lines = [header, *({"memory": one} for one in (said, nameless, mine)), {"fact": triple}]
    text = "\n".join(map(json.dumps, lines))
    assert bring("export.jsonl", text).new == 3
    known = [(one.author, one.trust, str(one.source), one.tags) for one in stored(app)]
    assert known == [
        ("ada", 0.5, "import", ("pay", "claimed-author:bob")),
        ("ada", 0.5, "import", ()),
        ("ada", 0.5, "import", ()),
    ]
    assert bring("mine.jsonl", text.replace("Pay ", "We pay "), own=True).new == 3
    assert [(one.trust, str(one.source)) for one in stored(app)[3:]] == [(0.5, "import")] * 2 + [(0.9, "hook")]
    assert [one.author for one in query_facts(app, FactQuery(), ADA).facts] == ["ada"]
    again = bring("export.jsonl", text)
    assert (again.new, again.updated, again.unchanged) == (0, 0, 3)


def test_what_others_wrote_here_stays_theirs(app: App, bring: Importing, tmp_path: Path) -> None:
    """An export of a team that is imported where it came from changes nobody's authorship."""
    bob = ADA.model_copy(update={"user": "bob"})
    remember(app, Draft(content="Pay by card only.", scope="team", trust=0.9), bob)
    export_file(app, tmp_path / "team.jsonl", ExportPage(), ADA)
    again = import_file(app, tmp_path / "team.jsonl", ADA)
    assert (again.new, again.updated, again.unchanged) == (0, 0, 1)
    assert [(one.author, one.trust, one.tags) for one in stored(app)] == [("bob", 0.9, ())]


@pytest.mark.parametrize(
    "place",
    [{"content": TOKEN}, {"abstract": TOKEN}, {"overview": f"it is {TOKEN}"}, {"id": f"mem-{TOKEN}"}],
    ids=["content", "abstract", "overview", "key"],
)
def test_a_secret_in_any_field_stays_out(app: App, bring: Importing, place: dict[str, str]) -> None:
    """An item with a secret is refused, counted and journalled without its value; the others are written."""
    lines = [layered(1, "It rained."), layered(2, "It snowed.", **place), layered(3, "It hailed.")]
    report = bring("memories.jsonl", "\n".join(lines))
    assert (report.new, report.refused, report.failed) == (2, 1, 0)
    (problem,) = report.problems
    assert problem.where == "memories.jsonl:2"
    assert "Secret detection" in problem.why
    assert TOKEN not in str(report)
    assert [one.content for one in stored(app)] == ["It rained.", "It hailed."]


def test_a_secret_can_be_masked(app: App, bring: Importing) -> None:
    """With `redact` the item arrives without its secret, and a second import finds it unchanged."""
    text = layered(1, f"The key is {TOKEN} for now.")
    report = bring("memories.jsonl", text, on_secret=OnSecret.REDACT)
    assert (report.new, report.refused) == (1, 0)
    (one,) = stored(app)
    assert TOKEN not in str(one)
    assert "[redacted: " in one.content
    assert bring("memories.jsonl", text, on_secret=OnSecret.REDACT).unchanged == 1


@pytest.mark.parametrize("token", [TOKEN, "AK" + "IA" + "Q7RS2TUV4WXY6ZAB"])
def test_a_masked_heading_leaves_nothing_of_it(
    app: App, bring: Importing, token: str, settings: Settings, tmp_path: Path
) -> None:
    """Key, tags and title are made of a heading and a file's name without their secret, in small letters neither."""
    (tmp_path / token).mkdir()
    long = " ".join(["word"] * 19)
    text = f"# Use _{token}_\nIt rains.\n## Below\n{long} {token} and more.\n"
    assert bring(f"{token}/CLAUDE.md", text, on_secret=OnSecret.REDACT).new == 2
    assert [one.tags[0][:12] for one in stored(app)] == ["use-redacted"] * 2
    app.close()
    plain = "".join(filter(str.isalnum, token)).lower().encode()
    for file in settings.folder.rglob("*"):
        data = file.read_bytes().lower() if file.is_file() else b""
        assert plain not in data
        assert token.lower().encode() not in data


def test_secrets_in_facts_tags_and_times_stay_out(app: App, bring: Importing) -> None:
    """Relations, tags and owners pass the gate too."""
    graph = [
        {"type": "relation", "from": "Ada", "relationType": "has", "to": TOKEN},
        {"type": "entity", "name": "Bo", "entityType": TOKEN, "observations": ["x"]},
        {"type": "entity", "name": "Cy", "entityType": "dog", "observations": [TOKEN]},
    ]
    report = bring("memory.json", "\n".join(map(json.dumps, graph)))
    assert (report.new, report.facts, report.refused) == (0, 0, 3)
    owned = bring("m.json", json.dumps([{"id": "1", "memory": "hello", "user_id": TOKEN}]))
    assert (owned.new, owned.refused) == (0, 1)
    assert stored(app) == []


def test_what_is_no_memory_is_told_and_the_rest_is_written(app: App, bring: Importing) -> None:
    """Empty, oversized and wrongly typed items fail with their line and their reason; nothing is half written."""
    lines = [
        layered(1, "It rained."),
        layered(2, ""),
        layered(3, "x" * 200_001),
        layered(4, "It snowed.", content=7),
        layered(5, "a\u0000b"),
        json.dumps({"category": "events", "content": "\ud800"}),
        layered(7, "It hailed."),
    ]
    report = bring("memories.jsonl", "\n".join(lines))
    assert (report.new, report.failed) == (2, 5)
    assert [one.where for one in report.problems] == [f"memories.jsonl:{number}" for number in (2, 3, 4, 5, 6)]
    assert all(one.why.startswith(("Missing content", "Invalid content")) for one in report.problems)
    assert [one.content for one in stored(app)] == ["It rained.", "It hailed."]


def test_the_same_key_twice_in_a_file_counts_once(app: App, bring: Importing) -> None:
    """The first of two items with one key is the memory; the second is told, so that a second run changes nothing."""
    text = "\n".join([layered(1, "It rained."), layered(1, "It snowed.")])
    assert [bring("memories.jsonl", text).failed for _ in range(2)] == [1, 1]
    assert [one.content for one in stored(app)] == ["It rained."]


def test_what_was_said_before_is_not_said_again(app: App, bring: Importing) -> None:
    """A text that somebody remembered already stays as they told it, with nothing of the file."""
    told = remember(app, Draft(content="It rained.", tags=["weather"]), ADA)
    report = bring("memories.jsonl", layered(1, "It rained."))
    assert (report.new, report.unchanged) == (0, 1)
    (one,) = stored(app)
    assert (str(one.id), one.key, one.source, one.tags) == (told.id, None, "tool", ("weather",))


def test_a_newer_version_here_is_kept(app: App, bring: Importing) -> None:
    """An item that says when it was changed last does not overwrite what was changed here later."""
    text = layered(1, "It rained.", updated_at="2026-01-01T00:00:00Z")
    bring("memories.jsonl", text)
    (one,) = stored(app)
    assert str(one.updated_at) == "2026-01-01 00:00:00+00:00"
    update_memory(app, Update(id=str(one.id), content="It rained a lot."), ADA)
    assert bring("memories.jsonl", text).unchanged == 1
    assert stored(app)[0].content == "It rained a lot."


def test_what_was_hidden_here_stays_hidden(app: App, bring: Importing) -> None:
    """An import does not bring back what somebody softly forgot; what was forgotten for good it does."""
    bring("memories.jsonl", layered(1, "It rained."))
    (one,) = stored(app)
    memory_forget(app, SoftForget(id=str(one.id)), ADA)
    assert bring("memories.jsonl", layered(1, "It poured.")).unchanged == 1
    assert stored(app) == []
    forget(app, Forget(id=str(one.id)), ADA)
    assert bring("memories.jsonl", layered(1, "It rained.")).new == 1


def test_nothing_near_is_merged(app: App, bring: Importing) -> None:
    """Memories that resemble each other stay apart, profiles too."""
    lines = [layered(n, f"Ada is an engineer{dots}", category="profile") for n, dots in enumerate([".", "!", "…"])]
    assert bring("memories.jsonl", "\n".join(lines)).new == 3
    assert len(stored(app)) == 3


def test_options_of_an_import_are_kept(app: App, bring: Importing) -> None:
    """The scope goes where the caller says, the category to what has none, the count of uses arrives."""
    head = "---\ncategory: own\n---\n"
    bring("A.md", f"{head}# X\nOne thing.", scope="team", category="docs")
    bring("memories.jsonl", layered(1, "Another.", active_count=7), scope="personal", category="docs")
    found = {one.content: one for one in stored(app)}
    assert (found["# X\n\nOne thing."].namespace, found["# X\n\nOne thing."].category) == ("team:crew", "own")
    other = found["Another."]
    assert (other.namespace, other.category, other.accessed_count) == ("user:ada", "docs", 7)


def test_a_dry_run_writes_nothing(app: App, bring: Importing) -> None:
    """It counts as the real run would and leaves no memory, no fact and no line in the journal."""
    bring("memories.jsonl", layered(1, "It rained."))
    lines = [layered(1, "It rained."), layered(2, "It snowed."), layered(3, TOKEN)]
    report = bring("memories.jsonl", "\n".join(lines), dry_run=True)
    assert (report.new, report.unchanged, report.refused) == (1, 1, 1)
    graph = '{"type":"relation","from":"Ada","to":"Bo","relationType":"knows"}'
    assert bring("memory.json", graph, dry_run=True, scope="team").facts == 1
    assert len(stored(app)) == 1
    assert query_facts(app, FactQuery(), ADA).total == 0
    assert bring("memory.json", graph, scope="team").facts == 1


def test_sensitivity_is_kept(app: App, bring: Importing) -> None:
    """What the file calls private is private here."""
    bring("A.md", "---\nsensitivity: private\n---\nHush.")
    assert stored(app) == []
    (one,) = recall(app, Query(query="hush", allow_private=True, min_score=0), ADA).hits
    assert one.memory.sensitivity is Sensitivity.PRIVATE


def test_progress_is_told(app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The callback hears how many bytes and things are done whenever a batch was written, and of the end."""
    path = tmp_path / "memories.jsonl"
    path.write_text("\n".join(layered(number, f"Event {number}.") for number in range(30)) + "\n{")
    monkeypatch.setattr("recollect.transfer.import_client._BATCH_ITEMS", 20)
    heard: list[tuple[int, int]] = []
    import_file(app, path, ADA, progress=lambda done, items: heard.append((done, items)))
    assert [items for _, items in heard] == [20, 30]
    assert heard[0][0] <= heard[1][0] == path.stat().st_size


def test_an_unreadable_file_writes_nothing(app: App, tmp_path: Path) -> None:
    """A document that ends early is refused as a whole, before anything of it is written."""
    path = tmp_path / "m.json"
    path.write_text('[{"id": "1", "memory": "Likes tea"}, ')
    with pytest.raises(InvalidInput, match="cannot be imported as mem0: It is not JSON"):
        import_file(app, path, ADA)
    with pytest.raises(InvalidInput):
        import_file(app, path, ADA, format=ImportFormat.MCP_MEMORY_SERVICE)
    assert stored(app) == []


def test_an_import_reaches_only_the_callers_own_rooms(app: App, bring: Importing) -> None:
    """Whoever imports the same file elsewhere has memories of their own, and updates nobody else's."""
    bring("CLAUDE.md", GUIDE)
    other = Caller(user="eve", team="crew", project="other")
    batch = ImportBatch(
        items=[{"kind": "memory", "where": "x", "fields": {"content": "y", "key": "claude.md#testing"}}]
    )
    assert import_batch(app, batch, other).new == 1
    assert stored(app)[0].content == "# Testing\n\nUse pytest -q."
    link = {"where": "x", "id": stored(app)[0].id, "superseded_by": stored(app)[1].id}
    fact = {"subject": "a", "predicate": "b", "object": "c", "memory_id": str(stored(app)[0].id)}
    report = import_batch(app, ImportBatch(items=[{"kind": "fact", "where": "y", "fields": fact}], links=[link]), other)
    assert (report.facts, report.failed) == (0, 1)
    assert get_memory(app, Get(id=str(stored(app)[0].id)), ADA).superseded_by is None


@pytest.mark.full
def test_many_memories_have_the_vectors_they_would_have_had(app: App, bring: Importing) -> None:
    """Reading many texts at once gives each the vectors it would have had alone, long and short ones mixed."""
    texts = [
        f"Report {number}: " + "the harbour was calm and the ships were late. " * (number % 40) for number in range(60)
    ]
    bring("memories.jsonl", "\n".join(layered(number, text) for number, text in enumerate(texts)))
    for text, one in zip(texts, stored(app), strict=True):
        assert one.content == text
    asked = vectors(app.embedder, [texts[39]], "query")[0]
    alone = remember(app, Draft(content=texts[39] + " "), ADA)
    found = app.vectors.cosines(asked, [stored(app)[39].id, int(alone.id)])
    assert len({round(cosine, 4) for cosine in found.values()}) == 1
