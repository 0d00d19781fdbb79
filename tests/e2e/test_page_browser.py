"""The page in a real browser: every screen, with and without JavaScript, by keyboard, wide and narrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

import recollect
from daemon_place import Place, open_place
from headless_browser import CHROMIUM, launched
from page_screens import screens
from page_store import SESSION, fill
from recollect import App, Caller, Draft, Settings
from stores import lay
from team_server import TeamServer, listening

pytestmark = pytest.mark.slow

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
NARROW, WIDE = {"width": 375, "height": 800}, {"width": 1440, "height": 900}
LOOKS = ((WIDE, "light"), (NARROW, "dark"))
FOLLOW = """address => {
    const link = document.createElement("a");
    link.href = address;
    document.body.append(link);
    link.click();
    link.remove();
}"""
TEAM_ONLY = ("", "team", "start", "inbox", "sign-in")
"""The screens that the server of a team shows in another way; all others are looked at on a machine of one's own."""


class Seen(NamedTuple):
    """A page of a browser that is signed in, with what went wrong in it and which hosts it asked."""

    page: Page
    base: str
    errors: list[str]
    hosts: set[str]

    def go(self, path: str) -> None:
        """Open an address of the page."""
        self.page.goto(f"{self.base}/page/{path}")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Return a browser for all tests here."""
    if not CHROMIUM:
        pytest.skip("no Chromium is installed: `scripts/programs` installs it")
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Place]:
    """Return a place whose store has something on every screen."""
    home = tmp_path_factory.mktemp("harbour") / "home"
    lay(migrated, home)
    with ExitStack() as undo:
        place = open_place(home, undo)
        place.ids = fill(lambda name, **fields: place.ask(name, fields))  # type: ignore[attr-defined]
        yield place


def opened(context: BrowserContext) -> Seen:
    """Open an empty page, which notes what goes wrong in it."""
    page = context.new_page()
    errors: list[str] = []
    hosts: set[str] = set()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    return Seen(page, "", errors, hosts)


@pytest.fixture(scope="module")
def signed_in(chromium: Browser, harbour: Place) -> Callable[[bool], tuple[BrowserContext, str]]:
    """Return what gives a browser that was let in by a one-time address, with scripts or without, and its address."""

    @cache
    def context(scripts: bool) -> tuple[BrowserContext, str]:
        made = chromium.new_context(java_script_enabled=scripts, reduced_motion="reduce")
        url = harbour.json("page")["url"]
        with made.new_page() as page:
            page.goto(url)
        return made, url.partition("/page/")[0]

    return context


@pytest.fixture
def browse(signed_in: Callable[[bool], tuple[BrowserContext, str]]) -> Iterator[Callable[..., Seen]]:
    """Return what opens the first screen of the harbour."""
    with ExitStack() as undo:

        def page(scripts: bool = True) -> Seen:
            context, base = signed_in(scripts)
            seen = opened(context)._replace(base=base)
            undo.callback(seen.page.close)
            seen.go("")
            return seen

        yield page


def unsound(page: Page, addresses: Iterable[str]) -> dict[str, Any]:
    """Return what axe finds on screens, wide in the light and narrow in the dark, and what is wider than the window.

    From one to the next leads a link, so that axe is compiled once.
    """
    page.evaluate(AXE)
    wrong: dict[str, Any] = {}
    for address in addresses:
        page.evaluate(FOLLOW, address)
        page.wait_for_url(address)
        for size, scheme in LOOKS:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size(size)  # type: ignore[arg-type]
            options = {"resultTypes": ["violations"], "preload": False, "iframes": False}
            if found := page.evaluate("options => axe.run(options).then(one => one.violations)", options):
                nodes = [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found]
                wrong[f"{address} {scheme}"] = nodes
            if (wide := page.evaluate("document.documentElement.scrollWidth")) > size["width"]:
                wrong[f"{address} is wide"] = wide
    return wrong


def test_every_screen_is_sound(browse: Any, harbour: Place) -> None:
    """Nothing is wider than the window, no script fails, nothing is asked of another host, and axe finds nothing."""
    seen = browse()
    seen.go("health")
    seen.page.get_by_role("button", name="Run the doctor").click()
    expect(seen.page.get_by_text("all well")).to_be_visible(timeout=60_000)  # it comes without another click
    own = [one for one in screens(harbour.ids).values() if one != "team"]  # type: ignore[attr-defined]
    assert unsound(seen.page, [f"{seen.base}/page/{path}" for path in (*own, "memory/99999")]) == {}
    assert [one for one in seen.errors if "404" not in one] == []
    assert seen.hosts == {urlsplit(seen.base).netloc}
    assert seen.page.title() != "taken"


@pytest.mark.parametrize("scripts", [True, False], ids=["javascript", "plain"])
def test_a_memory_is_put_right(browse: Any, harbour: Place, scripts: bool) -> None:
    """It is found by a search, edited, taken back, hidden, restored, pinned, moved and at last forgotten."""
    made = harbour.remember(f"The quay {'east' if scripts else 'west'} was rebuilt in granite by Emmy Noether.")
    seen = browse(scripts)
    page = seen.page
    page.get_by_role("searchbox").fill("who rebuilt the quay in granite")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("meter").first).to_be_visible()
    page.get_by_text("Why: found by").first.click()
    expect(page.get_by_text("how well it matches").first).to_be_visible()
    page.locator(f'a.what[href*="memory/{made}?"]').click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_role("textbox", name="Text", exact=True).fill("The quay was rebuilt in basalt.")
    page.get_by_role("button", name="Save").click()
    content = page.locator(".content").first
    expect(content).to_have_text("The quay was rebuilt in basalt.")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".content").first).to_contain_text("granite")
    for button, badge in (("Pin", "pinned"), ("Unpin", ""), ("Bury", "buried"), ("Unbury", ""), ("Hide", "hidden")):
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text("Memory")
        if badge:
            expect(page.locator("main .badge", has_text=badge).first).to_be_visible()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_role("button", name="Hide", exact=True)).to_be_visible()
    page.get_by_role("link", name="Move", exact=True).click()
    page.get_by_label("Who shares it").select_option("personal" if scripts else "project")
    page.get_by_label("Project, where it is another one").fill("" if scripts else "annex")
    page.get_by_role("button", name="Move").click()
    expect(page.get_by_role("status").first).to_contain_text("Moved to")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").first).to_contain_text("It is where it was before.")
    expect(page).to_have_url(re.compile(rf"memory/{made}"))
    page.get_by_role("link", name="Forget", exact=True).click()
    expect(page.get_by_text("This cannot be undone.")).to_be_visible()
    page.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_role("status").first).to_contain_text(f"Memory {made} is forgotten for good.")
    assert not [one for one in harbour.recall("granite basalt quay") if "Emmy Noether" in one or "basalt" in one]
    assert seen.errors == []


@pytest.mark.parametrize("scripts", [True, False], ids=["javascript", "plain"])
def test_the_next_session_is_put_right(browse: Any, harbour: Place, scripts: bool) -> None:
    """On the first screen a line is edited where it stands, pinned and buried; each is undone by one click."""
    made = harbour.remember(f"The {scripts} gangway is steel.", fact_type="decision")
    seen = browse(scripts)
    page = seen.page
    line = page.get_by_role("listitem").filter(has_text=f"[{made}]")
    for button, gone in (("Pin", False), ("Bury", True)):
        page.get_by_role("button", name=f"{button} memory {made}", exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text(f"Memory {made} is")
        expect(line).to_have_count(0 if gone else 1)
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("status").first).to_contain_text("That was taken back.")
        expect(line).to_have_count(1)
    line.get_by_label(f"Edit memory {made}", exact=True).click()
    line.get_by_label(f"Text of memory {made}").fill(f"The {scripts} gangway is aluminium.")
    line.get_by_role("button", name="Save").click()
    expect(line).to_contain_text("aluminium")
    page.get_by_role("button", name="Undo").click()
    expect(line).to_contain_text("steel")
    assert seen.errors == []


@pytest.mark.parametrize("scripts", [True, False], ids=["javascript", "plain"])
def test_near_duplicates_are_merged_by_one_click(browse: Any, harbour: Place, scripts: bool) -> None:
    """Both texts stand side by side; one click merges them, another keeps the newer, and each is undone."""
    what = "pilot boat fills up with diesel" if scripts else "choir of the sailors rehearses"
    old = harbour.remember(f"The {what} at pier 3.")
    new = harbour.remember(f"The {what} at pier 5 since April.")
    seen = browse(scripts)
    page = seen.page
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Duplicates").click()
    pair = page.locator("article.pair", has_text=what)
    expect(pair).to_contain_text("at pier 3")
    expect(pair).to_contain_text("at pier 5")
    for button, said in (
        (f"Merge memories {old} and {new}", "what both said"),
        (f"Keep the newer: memory {new}", "stays"),
    ):
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("status").first).to_contain_text(said)
        expect(pair).to_have_count(0)
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("status").first).to_contain_text("Both are as they were.")
        expect(pair).to_have_count(1)
    assert seen.errors == []


def test_a_question_is_asked_while_it_is_typed(browse: Any, harbour: Place) -> None:
    """The slash leads to the field from any screen; hits come and are marked without Enter, and no key is lost."""
    harbour.remember("The siren of the breakwater wails twice in fog.")
    seen = browse()
    page = seen.page
    page.locator("body").press("/")
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    page.keyboard.type("siren of the break", delay=30)
    hit = page.locator(".hit", has_text="wails twice in fog").first
    expect(hit.locator("mark", has_text="siren")).to_be_visible()
    expect(hit.locator("mark", has_text="breakwater")).to_be_visible()
    expect(field).to_have_value("siren of the break")
    expect(field).to_be_focused()
    expect(page).to_have_url(re.compile(r"\?(?:project=engine&)?q=siren\+of\+the\+break$"))
    page.keyboard.type("/")
    expect(field).to_have_value("siren of the break/")
    field.fill("")
    expect(page.get_by_role("heading", name="What your agents learnt and were told")).to_be_visible()
    seen.go("journal")
    page.locator("main").press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("siren")
    page.keyboard.press("Enter")
    expect(page.locator(".hit mark", has_text="siren").first).to_be_visible()
    assert seen.errors == []


def test_a_question_is_answered_without_scripts(browse: Any, harbour: Place) -> None:
    """The form is sent as ever, from the first screen and from the header of any other, and words are marked."""
    harbour.remember("The bollard of quay nine is painted red.")
    seen = browse(False)
    page = seen.page
    for path in ("", "journal"):
        seen.go(path)
        page.get_by_role("searchbox").fill("which bollard is painted")
        page.get_by_role("searchbox").press("Enter")
        expect(page.locator(".hit mark", has_text="bollard").first).to_be_visible()
    assert seen.errors == []


def test_a_memory_of_a_line_takes_a_line(browse: Any) -> None:
    """On a wide screen no row is higher than two lines of text, and what does not fit is cut within it."""
    seen = browse()
    seen.page.set_viewport_size({"width": 1280, "height": 800})
    for path in ("", "browse"):
        seen.go(path)
        heights = seen.page.locator(".rows .line:visible").evaluate_all("all => all.map(one => one.clientHeight)")
        assert heights
        assert max(heights) <= 40


@pytest.mark.parametrize(
    ("scripts", "zone"), [(True, "Asia/Kolkata"), (False, "Asia/Kolkata")], ids=["javascript", "plain"]
)
def test_times_are_those_of_the_person(chromium: Browser, harbour: Place, scripts: bool, zone: str) -> None:
    """A browser with scripts tells its zone by itself; without them the footer names the zone of the server."""
    context = chromium.new_context(java_script_enabled=scripts, timezone_id=zone)
    page = context.new_page()
    page.goto(harbour.json("page")["url"])
    footer = page.locator("body > footer")
    if scripts:
        expect(footer).to_contain_text(re.compile(r"times are in Asia/(Kolkata|Calcutta)"))
    else:
        expect(footer).to_contain_text("the zone of the server")
    assert page.title() == "Today · Recollect"
    context.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["javascript", "plain"])
def test_many_at_once(browse: Any, harbour: Place, scripts: bool) -> None:
    """The confirmation names exactly what goes; one click brings all of it back."""
    names = [f"Buoy {number} of the {scripts} channel is green." for number in range(3)]
    ids = [harbour.remember(name) for name in names]
    seen = browse(scripts)
    seen.go("browse")
    page = seen.page
    for one in ids[:2]:
        page.get_by_label(f"Select memory {one}", exact=True).check()
    page.get_by_role("button", name="Hide").click()
    expect(page.get_by_role("heading", name="Hide 2 memories?")).to_be_visible()
    listed = page.locator("main ol li").all_inner_texts()
    assert sorted(name in line for line in listed for name in names[:2]) == [False, False, True, True]
    page.get_by_role("button", name="Hide").click()
    expect(page.get_by_role("status").first).to_contain_text("2 memories are hidden.")
    expect(page.get_by_label(f"Select memory {ids[0]}", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label(f"Select memory {ids[0]}", exact=True)).to_have_count(1)
    assert seen.errors == []


@pytest.mark.parametrize(("scripts", "number"), [(True, 1), (False, 5)], ids=["javascript", "plain"])
def test_a_session_is_corrected(browse: Any, scripts: bool, number: int) -> None:
    """What was dropped is kept, and dropped again; the memory put before a prompt is named beside it."""
    seen = browse(scripts)
    seen.go(f"session?id={SESSION}")
    page = seen.page
    expect(page.get_by_text("put before the prompt").first).to_be_visible()
    page.get_by_role("button", name=f"Keep observation {number}", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text(f"Observation {number} is kept as memory")
    page.get_by_role("button", name=f"Drop observation {number}", exact=True).click()
    expect(page.get_by_role("button", name=f"Keep observation {number}", exact=True)).to_be_visible()
    assert seen.errors == []


@pytest.mark.parametrize("scripts", [True, False], ids=["javascript", "plain"])
def test_the_inbox_is_decided(browse: Any, harbour: Place, scripts: bool) -> None:
    """One is approved in other words, the others are rejected together, and one click lets those wait again."""
    where = f"notes-{scripts}.md:1"
    items = [
        {"kind": "memory", "where": where, "fields": {"content": f"Dolphin {n} of the {scripts} lagoon sings."}}
        for n in range(3)
    ]
    harbour.ask("import_batch", {"items": items, "last": True})
    seen = browse(scripts)
    page = seen.page
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Inbox").click()
    mine = page.locator("article", has_text=f"of the {scripts} lagoon")
    expect(mine).to_have_count(3)
    first = mine.first
    first.get_by_text("Approve it in other words").click()
    first.get_by_label("Text of memory").fill(f"A seal of the {scripts} strand sings.")
    first.get_by_role("button", name="in these words").click()
    expect(page.get_by_role("status").first).to_contain_text("is approved.")
    expect(mine).to_have_count(2)
    for box in mine.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Reject the selected").click()
    expect(page.get_by_role("status").first).to_contain_text("2 memories are rejected.")
    expect(mine).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(mine).to_have_count(2)
    mine.first.get_by_role("button", name="Never from this source").click()
    expect(mine).to_have_count(0)
    assert seen.errors == []


def test_a_memory_goes_round(browse: Any, harbour: Place) -> None:
    """The first visit stores a test memory, finds it and forgets it."""
    seen = browse()
    seen.go("start")
    seen.page.get_by_role("button", name="Try it").click()
    expect(seen.page.get_by_text("It works")).to_be_visible(timeout=20_000)
    assert harbour.recall("lighthouse keeper marzipan") == []


def _tab_to(page: Any, target: Any) -> None:
    """Press Tab until `target` has the focus; no script moves it."""
    expect(target).to_be_visible()
    for _ in range(60):
        if target.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError("the keyboard does not reach it")


def test_the_keyboard_is_enough(browse: Any, harbour: Place) -> None:
    """From the skip link to a saved edit nothing needs a mouse, and the focus never gets lost."""
    made = harbour.remember("The foghorn of the north mole is tested at noon.")
    seen = browse()
    page = seen.page
    seen.go("journal")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/page/(\?|$)"))  # the journal has a search box too
    _tab_to(page, page.get_by_role("searchbox"))
    page.keyboard.type("when is the foghorn tested")
    page.keyboard.press("Enter")
    link = page.locator(f'a.what[href*="memory/{made}?"]')
    expect(link).to_be_visible()
    expect(page.get_by_role("searchbox")).to_be_focused()
    _tab_to(page, link)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"memory/{made}"))
    _tab_to(page, page.get_by_role("link", name="Edit", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_label("Title")).to_be_visible()
    _tab_to(page, page.get_by_label("Title"))
    page.keyboard.press("Control+A")
    page.keyboard.type("Foghorn")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Foghorn", level=1)).to_be_visible()
    assert seen.errors == []


def test_changes_are_noticed(browse: Any, harbour: Place) -> None:
    """What somebody else stores meanwhile is told, and shown when it is asked for."""
    seen = browse()
    seen.go("browse")
    seen.page.wait_for_timeout(500)
    harbour.remember("A seal was born on the slipway.")
    seen.page.get_by_role("button", name="Show it").click(timeout=20_000)
    expect(seen.page.get_by_text("A seal was born")).to_be_visible()
    assert seen.errors == []


def test_a_team_is_administered(chromium: Browser, app: App, settings: Settings) -> None:
    """Its admin signs in by a token, invites somebody, and sees that in the audit; a reader sees no such forms."""
    team = TeamServer(app, settings)
    with listening(team) as there, ExitStack() as undo:
        for scripts, name in ((False, "dana"), (True, "dora")):
            pages: dict[str, Page] = {}
            for user in ("root", "bob"):
                context = chromium.new_context(java_script_enabled=scripts, reduced_motion="reduce")
                undo.callback(context.close)
                page = pages[user] = context.new_page()
                page.goto(f"{there.url}/page/team?project=engine")
                page.get_by_label("Token").fill(team.tokens[user])
                page.get_by_role("button", name="Sign in").click()
                expect(page.get_by_role("heading", name="Team", exact=True)).to_be_visible()
            root = pages["root"]
            form = root.locator("form", has=root.get_by_role("button", name="Invite", exact=True))
            form.get_by_label("Name").fill(name)
            form.get_by_label("Team").fill("crew")
            form.get_by_role("button", name="Invite", exact=True).click()
            expect(root.get_by_label("Copy it now")).to_have_value(re.compile(r"^rec_"))
            root.goto(f"{there.url}/page/team?project=engine")
            expect(root.get_by_text(name).first).to_be_visible()
            expect(root.get_by_role("button", name="Invite", exact=True)).to_have_count(1)
            expect(pages["bob"].get_by_role("button", name="Invite", exact=True)).to_have_count(0)
        stored = "[JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie]"
        assert root.evaluate(stored) == ["{}", "{}", ""]
        recollect.remember(app, Draft(content="The keel is iron."), Caller(user="root", team="crew", project="engine"))
        assert unsound(root, [f"{there.url}/page/{path}?project=engine" for path in TEAM_ONLY]) == {}
