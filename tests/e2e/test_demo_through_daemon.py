"""Everything the demo shows, through real MCP clients over stdio whose servers share one real daemon."""

from __future__ import annotations

from typing import Literal

import pytest

from daemon_place import Place

FACTS = (
    "We use TypeScript strict mode with noImplicitAny",
    "Production deploys go out on Tuesday mornings, never before a weekend",
    "Integration tests run against a disposable PostgreSQL in Kubernetes",
)
SECRET = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.full)])
def test_the_demo(place: Place, mode: Literal["auto", "legacy"]) -> None:
    """Remember, recall in three ways, update by key, refuse a secret, forget without a trace, and open it all again."""
    with place.talk(mode) as talk:
        assert [tool.name for tool in talk.tools()] == ["memory"]
        for fact in FACTS:
            assert talk.reply(action="remember", content=fact).startswith("Memory stored successfully with ID: ")
        mascot = talk.remember("The mascot is a quokka named Zerline")
        talk.warm()
        assert "Tuesday" in talk.recall("when do we ship releases?")[0]["content"]
        assert "noImplicitAny" in talk.recall("noImplicitAny")[0]["content"]
        assert "Kubernetes" in talk.recall("kuberntes")[0]["content"]
        assert talk.recall("quokka named Zerline")[0]["id"] == mascot
        first = talk.reply(action="remember", key="package_manager", content="npm installs the packages")
        second = talk.reply(action="remember", key="package_manager", content="pnpm installs the packages")
        assert first.startswith("Memory stored")
        assert second == first.replace("stored successfully with ID: ", "updated successfully (ID: ") + ")"
        assert SECRET not in talk.refused(action="remember", content=f"the deploy token is {SECRET}")
        assert "deleted" in talk.reply(action="forget", id=mascot)
    with place.talk(mode) as talk:
        assert [hit["content"] for hit in talk.recall("package manager")[:1]] == ["pnpm installs the packages"]
        assert not [hit for hit in talk.recall("quokka named Zerline") if "Zerline" in hit["content"]]
    place.cli("stop")
    assert not traces(place, b"erline")
    assert not traces(place, SECRET.encode())
    with place.talk(mode) as talk:
        assert "pnpm" in talk.recall("package manager")[0]["content"]


@pytest.mark.full
def test_two_clients_share_one_daemon(place: Place) -> None:
    """What one client remembers the other recalls, and both are served by the same process."""
    with place.talk() as one, place.talk("legacy") as other:
        one.remember("the release train leaves at noon")
        assert other.recall("release train")[0]["content"] == "the release train leaves at noon"
        assert len(place.daemons()) == 1


def traces(place: Place, text: bytes) -> list[str]:
    """Return the files of the store that still hold `text`."""
    files = [one for one in place.home.rglob("*") if one.is_file()]
    return [str(one) for one in files if text in one.read_bytes()]
