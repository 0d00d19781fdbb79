"""Every tool of every set, used as an agent would, through a real client, a real `recollect mcp` and the daemon."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from command_line import call
from daemon_place import Place
from recollect.doors import toolsets
from stdio_client import Talk, environment_of, is_warm, talking, until

SETS = ("store", "dual", "more")
FIXED = "The parser crashed on empty input because the tokenizer gave None; src/parse/lexer.py guards against it now"


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """Return one conversation with a server of all the sets, which is a client of a daemon."""
    home = tmp_path_factory.mktemp("store")
    environment = environment_of(home, DAEMON="1")
    try:
        with talking(environment, toolsets=SETS) as found:
            until(lambda: is_warm(found.use("search_memories", query="anything").structured_content))
            yield found
    finally:
        assert call(["stop"], environment, home).code == 0


@pytest.fixture
def project(request: pytest.FixtureRequest) -> str:
    """Return a project field of this test's own, so that tests of one conversation do not see each other's."""
    return str(request.node.name)


def reply(talk: Talk, tool: str, **arguments: Any) -> str:
    """Return the first text of a call that went well."""
    result = talk.use(tool, **arguments)
    assert not result.is_error, result.content
    return str(result.content[0].text)


def read(talk: Talk, tool: str, **arguments: Any) -> Any:
    """Return what the first text of a call that went well holds as JSON."""
    return json.loads(reply(talk, tool, **arguments))


def stored(talk: Talk, content: str, **fields: Any) -> str:
    """Store a memory and return its id."""
    text = reply(talk, "store_memory", content=content, **fields)
    assert text.startswith("Memory stored successfully with ID: ")
    return text.rpartition(" ")[2]


def test_the_chosen_sets_are_offered(talk: Talk) -> None:
    """Exactly the tools of the chosen sets are listed, in their order; another one is unknown."""
    names = [tool.name for tool in talk.tools()]
    assert tuple(names) == toolsets.tool_names(SETS)
    assert len(names) == len(set(names)) == 23
    with pytest.raises(MCPError, match=r"Unknown tool: `memory`\. Allowed: `store_memory`, "):
        talk.use("memory", action="recall", query="x")


def test_store_search_and_get(talk: Talk, project: str) -> None:
    """What is stored with all its metadata is found by meaning and read back whole; the read is counted."""
    metadata = {
        "title": "Lexer guard",
        "subtitle": "None from the tokenizer",
        "type": "bugfix",
        "concepts": ["gotcha", "problem-solution"],
        "category": "parser",
        "tags": ["lexer", "crash"],
        "importance": 0.8,
        "trust": 0.9,
        "files_read": ["src/parse/parser.py"],
        "files_modified": ["src/parse/lexer.py"],
        "session_id": "s1",
        "project": project,
        "discovery_tokens": 1200,
    }
    memory_id = stored(talk, FIXED, **metadata)
    assert reply(talk, "store_memory", content=FIXED) == f"Memory updated successfully (ID: {memory_id})"
    hits = read(talk, "search_memories", query="why did parsing fail?", project=project, type="bugfix")
    assert [hit["id"] for hit in hits] == [memory_id]
    assert hits[0]["content"] == FIXED
    whole = read(talk, "get_memory", id=memory_id)
    assert {name: whole[name] for name in metadata} == metadata
    assert whole["content"] == FIXED
    until(lambda: read(talk, "get_memory", id=memory_id)["accessed_count"] > 1)
    budget = read(talk, "search_memories", query="why did parsing fail?", project=project, max_tokens=200)
    assert [line.partition(":")[0] for line in budget["index"]] == [memory_id]


def test_sensitivity_gates_every_read(talk: Talk, project: str) -> None:
    """A private memory is found, listed and read only when it is asked for."""
    memory_id = stored(talk, "Ada hides her key under the blue flowerpot", sensitivity="private", project=project)
    for tool, arguments in (
        ("search_memories", {"query": "blue flowerpot", "project": project}),
        ("list_memories", {"project": project}),
        ("get_timeline", {"project": project}),
    ):
        closed, opened = (read(talk, tool, allow_private=private, **arguments) for private in (False, True))
        closed, opened = (one if isinstance(one, list) else one["memories"] for one in (closed, opened))
        assert (closed, [one["id"] for one in opened]) == ([], [memory_id])
    assert talk.use("get_memory", id=memory_id).content[0].text == f"Memory {memory_id} not found."
    assert read(talk, "get_memory", id=memory_id, allow_private=True)["sensitivity"] == "private"


def test_lists_and_timeline(talk: Talk, project: str) -> None:
    """Memories are listed a page at a time, in the order asked for, without their contents."""
    ids = [
        stored(talk, f"Step {number}: {what}", project=project)
        for number, what in enumerate(["buy apples", "tune the organ", "paint a fence"])
    ]
    pages = [read(talk, "list_memories", project=project, limit=2, offset=at, order="oldest") for at in (0, 2)]
    assert [one["id"] for page in pages for one in page["memories"]] == ids
    assert [page["total"] for page in pages] == [3, 3]
    assert all("content" not in one and one["preview"] for page in pages for one in page["memories"])
    newest = read(talk, "get_timeline", project=project, order="newest")["memories"]
    assert [one["id"] for one in newest] == ids[::-1]
    first = read(talk, "get_timeline", project=project, order="oldest", limit=1)["memories"]
    assert [one["id"] for one in first] == ids[:1]


def test_by_file_and_by_concept(talk: Talk) -> None:
    """Memories are found by a file they read or modified, by its folder or the end of its path, and by concept."""
    one = stored(talk, "The belfry needs oil", files_read=["tower/belfry/wheel.py"], concepts=["trade-off"])
    other = stored(talk, "The clock is wound weekly", files_modified=["tower/clock.py"])
    by_file = {
        path: {found["id"] for found in read(talk, "search_by_file", file=path)["memories"]}
        for path in ("tower", "tower/clock.py", "wheel.py", "nowhere.py")
    }
    assert by_file == {"tower": {one, other}, "tower/clock.py": {other}, "wheel.py": {one}, "nowhere.py": set()}
    assert [found["id"] for found in read(talk, "search_by_concept", concept="Trade-Off")["memories"]] == [one]


def test_update_and_delete(talk: Talk, project: str) -> None:
    """An update changes what is given, search follows it; a deleted memory is gone from every read."""
    memory_id = stored(talk, "The mascot is a quokka", category="brand", tags=["animal"], project=project)
    changed = reply(talk, "update_memory", id=memory_id, content="The mascot is an okapi", category="", importance=0.9)
    assert changed == f"Memory updated successfully (ID: {memory_id})"
    whole = read(talk, "get_memory", id=memory_id)
    assert (whole["content"], whole["title"], whole["tags"]) == ("The mascot is an okapi",) * 2 + (["animal"],)
    assert "category" not in whole
    assert [hit["id"] for hit in read(talk, "search_memories", query="okapi", project=project)] == [memory_id]
    assert read(talk, "search_memories", query="quokka", project=project, min_score=0.9) == []
    assert reply(talk, "delete_memory", id=memory_id) == f"Memory {memory_id} deleted."
    assert reply(talk, "delete_memory", id=memory_id) == f"Memory {memory_id} not found."
    assert read(talk, "list_memories", project=project)["total"] == 0
    assert [line["action"] for line in read(talk, "history", id=memory_id)["history"]] == ["insert", "update", "delete"]


def test_facts_replace_one_another(talk: Talk) -> None:
    """A fact that replaces another ends it, and it is still found by its time; others hold side by side."""
    source = stored(talk, "We release on Mondays from May on")
    old = {"subject": "release", "predicate": "day", "object": "Friday", "valid_from": "2026-01-01"}
    assert reply(talk, "store_fact", **old).startswith("Fact stored successfully with ID: ")
    new = talk.use(
        "store_fact", **old | {"object": "Monday", "valid_from": "2026-05-01", "memory_id": source, "replaces": True}
    )
    assert new.content[1].text.startswith("Fact ")
    [now] = read(talk, "query_facts", subject="Release")["facts"]
    assert (now["object"], now["memory_id"]) == ("Monday", source)
    [then] = read(talk, "query_facts", subject="release", as_of="2026-03-01")["facts"]
    assert (then["object"], then["valid_to"]) == ("Friday", "2026-05-01T00:00:00+00:00")
    assert read(talk, "query_facts", predicate="day", history=True)["total"] == 2
    for language in ("Python", "Rust"):
        reply(talk, "store_fact", subject="team", predicate="writes", object=language)
    held = {fact["object"] for fact in read(talk, "query_facts", subject="team")["facts"]}
    assert held == {"Python", "Rust"}


def test_expired_memories_are_purged(talk: Talk, project: str) -> None:
    """What has passed its time is found no more, and removed for good when that is asked for."""
    memory_id = stored(talk, "The lift is out of order today", ttl_days=0.000001, project=project)
    until(lambda: read(talk, "list_memories", project=project)["total"] == 0)
    assert read(talk, "search_memories", query="lift out of order", project=project) == []
    assert reply(talk, "purge_expired", scope="team") == "0 expired memories removed."
    purged = talk.use("purge_expired")
    assert memory_id in purged.structured_content["ids"]
    assert [line["action"] for line in read(talk, "history", id=memory_id)["history"]] == ["insert", "purge"]


def test_old_memories_are_condensed(talk: Talk) -> None:
    """What nobody touched for long comes after one summary of its category, and can be made current again."""
    texts = ["The attic holds old maps", "The cellar floods in March", "The roof was tiled in slate"]
    ids = [stored(talk, text, category="house", scope="personal") for text in texts]
    done = talk.use("summarize_old", older_than_days=0.000000001, category="house", scope="personal")
    assert done.content[0].text == "3 memories condensed into 1 summary."
    [summary] = done.structured_content["ids"]
    content = read(talk, "get_memory", id=summary)["content"]
    assert all(word in content for word in ("maps", "floods", "slate"))
    listed = read(talk, "list_memories", category="house")["memories"]
    assert (listed[0]["id"], listed[0]["type"]) == (summary, "compressed_summary")
    assert {one["id"] for one in listed[1:]} == set(ids)
    assert read(talk, "get_memory", id=ids[0])["superseded_by"] == summary
    assert reply(talk, "restore", id=ids[0]) == f"Memory {ids[0]} restored."
    assert "superseded_by" not in read(talk, "get_memory", id=ids[0])


def test_dual_store_and_recall(talk: Talk) -> None:
    """`memory_store` creates and updates on a scale of ten; `memory_recall` answers with index and details."""
    text = reply(talk, "memory_store", content="Grace drinks tea in the morning", summary="Grace: tea", type="self")
    memory_id = text.rpartition(" ")[2]
    changed = reply(talk, "memory_store", id=memory_id, importance=9, tags=["tea"])
    assert changed == f"Memory updated successfully (ID: {memory_id})"
    whole = read(talk, "get_memory", id=memory_id)
    assert (whole["importance"], whole["fact_type"], whole["abstract"]) == (0.9, "self", "Grace: tea")
    answer = read(talk, "memory_recall", query="what does Grace drink?", max_tokens=300)
    assert answer["index"][0] == f"{memory_id}: Grace: tea"
    assert answer["details"][0]["content"] == "Grace drinks tea in the morning"
    assert answer["omitted"] == len(answer["index"]) - len(answer["details"])


def test_dual_remember_and_forget(talk: Talk) -> None:
    """`memory_remember` keeps one of six kinds in three layers; a forgotten one is hidden, or gone for good."""
    case = {"category": "cases", "abstract": "Disk full on deploy", "overview": "The deploy failed; the disk was full."}
    text = reply(talk, "memory_remember", content="The deploy failed since the disk was full, so we grew it", **case)
    memory_id = text.rpartition(" ")[2]
    whole = read(talk, "get_memory", id=memory_id)
    layers = (whole["fact_type"], whole["abstract"], whole["overview"])
    assert layers == ("case", case["abstract"], case["overview"])

    def found() -> list[str]:
        answer = read(talk, "memory_recall", query="deploy failed, disk full")
        return [line.partition(":")[0] for line in answer["index"]]

    hidden = talk.use("memory_forget", id=memory_id)
    assert hidden.content[0].text == f"Memory {memory_id} deleted."
    assert hidden.content[1].text.startswith("It said: ")
    assert "restore" in hidden.content[2].text
    assert memory_id not in found()
    assert reply(talk, "restore", id=memory_id) == f"Memory {memory_id} restored."
    assert memory_id in found()
    assert reply(talk, "memory_forget", id=memory_id, hard=True) == f"Memory {memory_id} deleted."
    assert reply(talk, "restore", id=memory_id) == f"Memory {memory_id} not found."


def test_more(talk: Talk, project: str) -> None:
    """What says nearly the same is found by text and by id; the prompt is fenced; counts grow with what is stored."""
    before = read(talk, "stats")["memories"]
    memory_id = stored(talk, "The ferry to the island leaves at nine", project=project, category="travel")
    assert read(talk, "stats")["memories"] == before + 1
    assert read(talk, "stats")["by_category"]["travel"] == 1
    near = read(talk, "find_similar", content="The ferry to the island departs at nine")["memories"]
    assert (near[0]["id"], near[0]["cosine"] > 0.8) == (memory_id, True)
    assert memory_id not in [one["id"] for one in read(talk, "find_similar", id=memory_id, threshold=-1)["memories"]]
    prompt = reply(talk, "format_for_prompt", query="when does the ferry leave?", category="travel")
    assert prompt.startswith("<memories>\n")
    assert f"- [{memory_id}] (general, " in prompt
    assert [line["action"] for line in read(talk, "history", id=memory_id)["history"]] == ["insert"]


def test_a_secret_is_refused_by_every_writing_tool(talk: Talk) -> None:
    """No tool takes a secret, whichever field it comes in; the answer names field and kind, never the value."""
    secret = "gh" + "p_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
    memory_id = stored(talk, "where the deploy token lies")
    for tool, arguments in (
        ("store_memory", {"content": "token", "title": secret}),
        ("update_memory", {"id": memory_id, "content": secret}),
        ("store_fact", {"subject": "token", "predicate": "is", "object": secret}),
        ("memory_store", {"content": "token", "summary": secret}),
        ("memory_remember", {"content": "token", "category": "case", "overview": secret}),
    ):
        result = talk.use(tool, **arguments)
        assert result.is_error, tool
        assert result.content[0].text.startswith("Secret detection: ")
        assert secret not in str(result)


def test_a_set_that_does_not_exist_ends_with_two(make_place: Callable[..., Place]) -> None:
    """`recollect mcp` with an unknown toolset says which there are and ends as invalid input does."""
    text = make_place().cli("mcp", "--toolset", "all", code=2)
    assert "Unknown toolset: `all`. Allowed: `memory`, `store`, `dual`, `more`" in " ".join(text.split())


@pytest.mark.full
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_sets_over_http(place: Place, mode: Any) -> None:
    """Over HTTP the address says which tools there are; nothing said is the default; a wrong name is refused."""
    place.pid()
    published = place.published()
    headers = {"Authorization": f"Bearer {published['token']}"}

    async def names(query: str) -> list[str]:
        transport = httpx2.AsyncHTTPTransport(uds=published["socket"])
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers, timeout=None
        ) as client:
            stream = streamable_http_client(f"http://localhost/mcp?user=ada&project=engine{query}", http_client=client)
            async with Client(stream, mode=mode) as mcp:
                found = [tool.name for tool in (await mcp.list_tools()).tools]
                if "get_timeline" in found:
                    content = {"content": "said over HTTP"}
                    assert not (await mcp.call_tool("store_memory", content)).is_error
                    timeline = await mcp.call_tool("get_timeline", {})
                    assert timeline.structured_content["memories"][0]["preview"] == "said over HTTP"
        return found

    assert anyio.run(names, "") == ["memory"]
    assert anyio.run(names, "&toolset=store&toolset=memory") == list(toolsets.tool_names(["store", "memory"]))
    with pytest.raises((MCPError, ExceptionGroup)) as caught:
        anyio.run(names, "&toolset=all")
    assert "Unknown toolset: `all`" in repr(caught.value)
