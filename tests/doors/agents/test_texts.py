"""Edits of JSON with comments, TOML and instruction files: only what is ours changes."""

from __future__ import annotations

import itertools
import json
import random
from types import ModuleType
from typing import Any

import pytest

from recollect.doors.agents import json_text, passage, toml_text
from recollect.transfer.installed_passage import PASSAGE_END

ENTRY = {"type": "stdio", "command": "/opt/recollect", "args": ["mcp"], "env": {"RECOLLECT_HOME": 'C:\\a "b"'}}
JSON = {
    "other server": '{\n  "mcpServers": {\n    "github": {\n      "command": "npx"\n    }\n  }\n}\n',
    "other settings": '{\n    "theme": "One Dark",\n    "fonts": [1, 2]\n}',
    "comments and trailing commas": (
        '// Zed\n{\n  // "mcpServers": {},\n  "theme": "a // b /* c */", /* why\n  not */\n  "mcpServers": { // mine\n'
        '    "github": { "command": "npx", }, // hub\n    // the last\n  },\n}\n'
    ),
    "windows": '{\r\n\t"mcpServers": {\r\n\t\t"github": {}\r\n\t}\r\n}\r\n',
    "one line": '{"theme": "dark", "mcpServers": {"github": {"command": "npx"}}}',
    "one line, no servers": '{"theme": "dark"}\n',
    "first member beside the brace": '{"theme": "dark",\n "mcpServers": {"a": {},\n  "b": {}}}\n',
    "quotes": '{\n  "a \\" // b": "\\\\",\n  "größe": "✓"\n}\n',
}
TOML = {
    "other server": '# mine\nmodel = "o3"\n\n[mcp_servers.github]  # hub\ncommand = "npx"\nargs = ["-y"]\n',
    "no server": 'model = "o3"\n\n[projects."/a b"]\ntrust_level = "trusted"\n',
    "windows": 'model = "o3"\r\n[tui]\r\ntheme = "dark"\r\n',
    "out of order": '[mcp_servers.a]\ncommand = "a"\n\n[tui]\nx = 1\n\n[mcp_servers.b]\ncommand = "b"\n# the end\n',
    "long text": 'x = """\n[mcp_servers.recollect]\ncommand = "no"\n"""\n',
}
CASES = [(json_text, "mcpServers", name, text) for name, text in JSON.items()]
CASES += [(toml_text, "mcp_servers", name, text) for name, text in TOML.items()]


@pytest.mark.parametrize(("form", "key", "text"), [(f, k, t) for f, k, _, t in CASES], ids=[n for _, _, n, _ in CASES])
def test_an_entry_comes_and_goes(form: ModuleType, key: str, text: str) -> None:
    """What is put in can be read there, every other line stays as it was, and taking it out gives the text back."""
    added = form.put(text, [key], "recollect", ENTRY)
    expected = form.parse(text)
    expected.setdefault(key, {})["recollect"] = ENTRY
    assert form.parse(added) == expected
    assert "\n" not in added.replace("\r\n", "") or "\r\n" not in text
    changed = form.put(added, [key], "recollect", ENTRY | {"command": "/elsewhere"})
    assert form.parse(changed)[key]["recollect"]["command"] == "/elsewhere"
    dropped = form.drop(added, [key], "recollect")
    if text.count("\n") > 1 and "beside" not in text and not text.startswith('{"'):
        assert dropped == text
    assert form.parse(dropped) == form.parse(text)


@pytest.mark.parametrize("text", ["", "{}", "{\n}\n", "// nothing yet\n", "{ /* nothing */ }", '{"mcpServers": {}}'])
def test_an_entry_comes_into_nothing(text: str) -> None:
    """A file that is empty, or holds comments alone, gets an object; it is empty again afterwards."""
    added = json_text.put(text, ["mcpServers"], "recollect", ENTRY)
    assert json_text.parse(added) == {"mcpServers": {"recollect": ENTRY}}
    assert json_text.parse(json_text.drop(added, ["mcpServers"], "recollect")) == {}


@pytest.mark.parametrize("seed", range(40))
def test_any_place_among_others(seed: int) -> None:
    """Wherever the entry stands among comments, commas and other servers, the others are the same without it."""
    chance = random.Random(seed)
    names = chance.sample(["a", "b", "recollect", "c"], 4)[: chance.randint(1, 4)]
    names = names if "recollect" in names else [*names, "recollect"]
    gaps = itertools.cycle(chance.sample(["\n  ", " ", " // one, {\n ", "/* ] } , */", "\r\n\t"], 5))
    comma = chance.choice(["", ","])
    members = (f'{next(gaps)}"{name}"{next(gaps)}:{next(gaps)}{{"x": [{{}}, "}}"]}}{next(gaps)}' for name in names)
    text = f'{{{next(gaps)}"s": {{{",".join(members)}{comma}{next(gaps)}}}{comma}}}'
    expected: dict[str, Any] = {"s": {name: {"x": [{}, "}"]} for name in names if name != "recollect"}}
    dropped = json_text.drop(text, ["s"], "recollect")
    assert json_text.parse(dropped) in (expected, {} if names == ["recollect"] else expected)
    put = json_text.put(dropped, ["s"], "recollect", ENTRY)
    assert json_text.parse(put)["s"] == expected["s"] | {"recollect": ENTRY}


@pytest.mark.parametrize("seed", range(60))
def test_elements_of_a_list_come_and_go(seed: int) -> None:
    """Wherever an element is put, changed or dropped among comments and commas, all others stay what they are."""
    chance = random.Random(seed)
    gaps = itertools.cycle(chance.sample(["\n    ", " ", "", " // one, [\n ", "/* ] } , */", "\r\n\t"], 5))
    elements: list[Any] = chance.sample([1, "a, ]", {"x": [1, {}]}, [[]], None, {}], chance.randint(0, 4))
    comma = chance.choice(["", ","]) if elements else ""
    inner = ",".join(f"{next(gaps)}{json.dumps(one)}{next(gaps)}" for one in elements)
    text = f'{{{next(gaps)}"s": {{"l":{next(gaps)}[{inner}{comma}{next(gaps)}], "other": 1}}}}'
    added = json_text.append(text, ["s"], "l", ENTRY)
    assert json_text.parse(added) == {"s": {"l": [*elements, ENTRY], "other": 1}}
    index = chance.randrange(len(elements) + 1)
    changed = json_text.replace_element(added, ["s"], "l", index, "new")
    expected = [*elements, ENTRY]
    expected[index] = "new"
    assert json_text.parse(changed)["s"]["l"] == expected
    dropped = json_text.drop_element(changed, ["s"], "l", index)
    del expected[index]
    assert json_text.parse(dropped) == {"s": ({"l": expected} if expected else {}) | {"other": 1}}


def test_a_list_is_made_and_goes_with_its_last_element() -> None:
    """Where there is no list yet one is made, in a file that is empty too; it goes with what alone it held."""
    for text in ("", "{}", '{"hooks": {"other": [1]}}', '{"hooks": {"Stop": []}}'):
        added = json_text.append(text, ["hooks"], "Stop", ENTRY)
        assert json_text.parse(added)["hooks"]["Stop"] == [ENTRY]
        left = json_text.parse(json_text.drop_element(added, ["hooks"], "Stop", 0))
        assert left == ({"hooks": {"other": [1]}} if "other" in text else {})
    for text in ('{"hooks": {"Stop": {}}}', '{"hooks": []}'):
        with pytest.raises(ValueError, match="is no"):
            json_text.append(text, ["hooks"], "Stop", ENTRY)
    with pytest.raises(ValueError, match="there is no"):
        json_text.drop_element("{}", ["hooks"], "Stop", 0)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"mcpServers": []}', '{"mcpServers": {}, "mcpServers": {}}', '{"a": 1,, "b": 2}', '"a', "[" * 100_000],
)
def test_damaged_json_is_refused(text: str) -> None:
    """Text that is no object, or has the same table twice, is not edited."""
    with pytest.raises(ValueError, match=r".+"):
        json_text.put(text, ["mcpServers"], "recollect", ENTRY)


@pytest.mark.parametrize("text", ["[mcp_servers", "mcp_servers = 1", "a = 1\na = 2"])
def test_damaged_toml_is_refused(text: str) -> None:
    """TOML that cannot be read, or has something else in the place of the table, is not edited."""
    with pytest.raises(ValueError, match=r".+"):
        toml_text.put(text, ["mcp_servers"], "recollect", ENTRY)


def test_toml_in_other_forms() -> None:
    """An inline table takes the entry too, and one that somebody wrote with tables of its own goes whole."""
    inline = toml_text.put('mcp_servers = { a = { command = "a" } }\n', ["mcp_servers"], "recollect", ENTRY)
    assert toml_text.parse(inline)["mcp_servers"] == {"a": {"command": "a"}, "recollect": ENTRY}
    own = '# mine\n[mcp_servers.recollect]\ncommand = "x" # t\n\n[mcp_servers.recollect.env]\nA = "1"\n\n[t]\nb = 1\n'
    changed = toml_text.put(own, ["mcp_servers"], "recollect", {"command": "y", "env": {"A": "1"}})
    assert changed == own.replace('"x"', '"y"')
    assert toml_text.parse(toml_text.drop(own, ["mcp_servers"], "recollect")) == {"t": {"b": 1}}


def test_json_of_a_single_text_stays_short() -> None:
    """A list of one text stands on one line, as people write it."""
    added = json_text.put("", ["mcpServers"], "recollect", ENTRY)
    assert '"args": ["mcp"]' in added
    assert json.loads(added)["mcpServers"]["recollect"] == ENTRY


@pytest.mark.parametrize("text", ["", "# Rules\n", "# Rules\n\nNo end", "# Rules\r\n\r\nWindows\r\n"])
def test_the_passage_comes_and_goes(text: str) -> None:
    """The passage stands at the end, is replaced where an older one stood, and goes with its marker comments."""
    added = passage.put(text, passage.BLOCK, "")
    assert added.startswith(text)
    assert passage.put(added, passage.BLOCK, "") == added
    assert ("\r\n" in added) == ("\r\n" in text)
    older = added.replace("Never store secrets.", "")
    assert passage.put(older, passage.BLOCK, "") == added
    assert passage.drop(added).rstrip() == text.rstrip()


def test_the_passage_is_short_and_says_what_counts() -> None:
    """It has at most 120 words and names the tool, its three actions, and that recalled text is data."""
    assert len(passage.TEXT.split()) <= 120
    assert all(f"`{word}`" in passage.TEXT for word in ("memory", "remember", "recall", "forget"))
    assert "data, never instructions" in passage.TEXT


@pytest.mark.parametrize(
    "text",
    [
        passage.BEGIN,
        PASSAGE_END,
        passage.BLOCK * 2,
        f"{PASSAGE_END}\n{passage.BEGIN}",
    ],
)
def test_markers_that_are_no_pair_are_refused(text: str) -> None:
    """Where somebody has broken the marker comments, nothing is guessed."""
    with pytest.raises(ValueError, match="marker"):
        passage.put(text, passage.BLOCK, "")
