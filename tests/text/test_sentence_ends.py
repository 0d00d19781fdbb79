"""Where a sentence ends."""

from __future__ import annotations

import pytest

from recollect.text.sentences import first_sentence, sentence_spans, sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("We deploy on Fridays. Nobody deploys on Mondays!", ["We deploy on Fridays.", "Nobody deploys on Mondays!"]),
        ("Use a queue, e.g. Redis. It is fast.", ["Use a queue, e.g. Redis.", "It is fast."]),
        ("Ask Dr. Lee, vs. Prof. Kim.", ["Ask Dr. Lee, vs. Prof. Kim."]),
        ("See No. 5 of the list. No. Use another.", ["See No. 5 of the list.", "No.", "Use another."]),
        ("The limit is 5. The timeout is 3.", ["The limit is 5.", "The timeout is 3."]),
        ("1. Build it\n 2. Ship it", ["1. Build it", "2. Ship it"]),
        ("Am 3.4. wird gesperrt. Danach nicht.", ["Am 3.4. wird gesperrt.", "Danach nicht."]),
        ("Wait… it works. Wait… Now it fails.", ["Wait… it works.", "Wait…", "Now it fails."]),
        ("先备份数据库。再部署！！好。", ["先备份数据库。", "再部署！！", "好。"]),
        ("one line\n\n  another; and more  ", ["one line", "another; and more"]),
        ("version 3.11 of app.py", ["version 3.11 of app.py"]),
        ("It takes 118 ms. Shall I?", ["It takes 118 ms.", "Shall I?"]),
        (" \n", []),
    ],
)
def test_where_sentences_end(text: str, found: list[str]) -> None:
    """A sentence ends at its mark or at its line, but not at an abbreviation, an initial or the number of an item."""
    assert sentences(text) == found
    assert [text[start:end] for start, end in sentence_spans(text)] == found
    assert first_sentence(text) == (found[0] if found else "")


def test_a_semicolon_ends_a_sentence_where_it_shall() -> None:
    """A semicolon ends a sentence for those that read each clause by itself."""
    assert sentences("Stop; go on.", semicolons=True) == ["Stop;", "go on."]
