"""Traces of texts: a passage is found whatever stands between its letters, and what everybody says is none."""

from __future__ import annotations

from recollect.text.traces import Traces, texts_in

SECRET = "The harbour keys lie in the red drawer of the office, behind the old compass of the captain."


def test_a_passage_is_found_in_other_clothes() -> None:
    """Letter case, signs and spaces hide nothing, nor does a field of JSON or a part of the sentence."""
    traces = Traces()
    traces.add({"content": SECRET, "tags": ["short"]})
    for quoted in (
        SECRET.upper(),
        f'2026-03-01 [info] "{SECRET[8:70]}" was stored',
        {"undo": {"texts": [[1, 2, SECRET.replace(" ", "_")]]}},
        SECRET.replace(" ", "  "),
    ):
        assert traces.found_in(quoted), quoted
    for other in ("The harbour is closed.", "The red drawer", {"id": 1, "lines": [None, 2.5]}, ""):
        assert not traces.found_in(other), other


def test_a_short_text_is_found_as_a_whole_line() -> None:
    """A text of a few words is a trace where a line says it and nothing else, and a word alone is none."""
    traces = Traces()
    traces.add(["The mast is pine.", "ok"])
    assert traces.found_in("Summary of 2 memories\n- The mast is pine\n- more")
    assert not traces.found_in("Everybody knows that the mast is pine and oak.")
    assert not traces.found_in("ok")
    assert len(traces) == 1


def test_what_others_say_too_is_taken_out() -> None:
    """Passages that are known to stand elsewhere with good reason are no traces any more; all others stay."""
    traces = Traces()
    traces.add(SECRET)
    rest = traces.without(traces.found_in(SECRET[:60]))
    assert 0 < len(rest) < len(traces)
    assert not rest.found_in(SECRET[:60])
    assert rest.found_in(SECRET)


def test_texts_of_json() -> None:
    """Every text of a value is read, and no name of a field."""
    assert list(texts_in({"a": ["b", {"c": "d"}, 1, None], "e": ("f",)})) == ["b", "d", "f"]
