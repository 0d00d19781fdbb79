"""Take the pictures of docs/page.md: every screen of the page, wide and narrow, light and dark, in Debian's Chromium.

`PYTHONPATH=tests/support .venv/bin/python scripts/pictures/page.py` writes them into docs/page, with few colours so
that they stay small; names of screens behind it take those alone. The pictures are put there together when all were
taken.
"""

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser

from daemon_place import Place, open_place
from headless_browser import launched
from page_screens import screens
from page_store import fill
from stores import open_app
from team_server import TeamServer, listening

OUT = Path(__file__).resolve().parents[2] / "docs" / "page"
SIZES: dict[str, dict[str, Any]] = {
    f"{size}{tail}": {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    for size, width, height in (("wide", 1440, 900), ("narrow", 375, 812))
    for tail, scheme in (("", "light"), ("-dark", "dark"))
}
_LEFT_OUT = ("changes", "team")  # what only programs ask for, and what only the server of a team has
COLOURS = 128
LONGEST = 1_600  # pixels


def picture(page: Any, taken: Path, name: str) -> None:
    """Write what the window shows, the top of what is long, into a folder."""
    height = min(LONGEST, page.evaluate("document.documentElement.scrollHeight"))
    width = page.viewport_size["width"]
    shot = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
    Image.open(BytesIO(shot)).convert("RGB").quantize(COLOURS).save(taken / f"{name}.png", optimize=True)


def of_daemon(browser: Browser, place: Place, ids: dict[str, str], taken: Path, wanted: list[str]) -> None:
    """Take the screens of one's own store."""
    for size, options in SIZES.items():
        context = browser.new_context(**options)
        page = context.new_page()
        url = place.json("page")["url"]
        page.goto(url)
        for name, path in screens(ids).items():
            if name in _LEFT_OUT or (wanted and name not in wanted):
                continue
            page.goto(f"{url.partition('/page/')[0]}/page/{path}")
            if name == "search":
                page.get_by_text("Why: found by").first.click()
            if name == "health" and page.get_by_role("button", name="Run the doctor").count():
                page.get_by_role("button", name="Run the doctor").click()
                page.get_by_text("all well").wait_for()
                page.reload()
            if name == "first-steps":
                page.get_by_role("button", name="Try it").click()
                page.get_by_text("It works").wait_for()
            picture(page, taken, f"{name}-{size}")
        context.close()


def of_team(browser: Browser, place: Place, taken: Path) -> None:
    """Take what only the server of a team has: signing in, and the team."""
    with open_app(place.settings.model_copy(update={"home": place.home.with_name("team")})) as app:
        team = TeamServer(app, place.settings)
        team.administer("add_project", team="crew", project="engine")
        with listening(team) as there:
            for size, options in SIZES.items():
                page = browser.new_context(**options).new_page()
                page.goto(f"{there.url}/page/team?project=engine")
                picture(page, taken, f"sign-in-{size}")
                page.get_by_label("Token").fill(team.tokens["root"])
                page.get_by_role("button", name="Sign in").click()
                page.get_by_role("heading", name="Team", exact=True).wait_for()
                picture(page, taken, f"team-{size}")


def main() -> None:
    """Take every picture anew, or those of the screens that were named."""
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as undo, launched() as browser:
        taken = Path(folder) / "pictures"
        taken.mkdir()
        os.environ["HOME"] = folder  # no picture shows what is connected on this machine
        place = open_place(Path(folder) / "home", undo)
        ids = fill(lambda name, **fields: place.ask(name, fields))
        of_daemon(browser, place, ids, taken, wanted)
        if not wanted or "team" in wanted:
            of_team(browser, place, taken)
        if not wanted:
            shutil.rmtree(OUT, ignore_errors=True)
        shutil.copytree(taken, OUT, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
