"""Duplicates: which texts say the same, which never do, and what two texts are when they are merged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.memory.likeness import merged_text, say_the_same

quick = hypothesis_settings(deadline=None, database=None)

# One detail is another, or a word that turns the sense has come or gone.
DIFFERENT = [
    ("The upload limit is 5 MB.", "The upload limit is 6 MB."),
    ("The upload limit is 5 MB.", "The upload limit is 5 GB."),
    ("The timeout is 30 ms.", "The timeout is 30 s."),
    ("The timeout is thirty seconds.", "The timeout is forty seconds."),
    ("The line carries 100 Mb per second.", "The line carries 100 MB per second."),
    ("Tests must cover 80% of the code.", "Tests must cover 90% of the code."),
    ("The plan costs $20 per month.", "The plan costs €20 per month."),
    ("The plan costs $20 per month.", "The plan costs $20 per year."),
    ("The server keeps 1,000 sessions.", "The server keeps 10,000 sessions."),
    ("The team has a server in Berlin.", "The team has three servers in Berlin."),
    ("It was -5 degrees in the lab.", "It was 5 degrees in the lab."),
    ("The release is on 3 May 2024.", "The release is on 3 June 2024."),
    ("The release is on 3 May 2024.", "The release is on 4 May 2024."),
    ("The release is on 3 May 2024.", "The release is on 3 May 2025."),
    ("The audit happened in March.", "The audit happened in April."),
    ("Deploys happen on Tuesdays.", "Deploys happen on Thursdays."),
    ("The stand-up is at 9 am.", "The stand-up is at 9 pm."),
    ("The stand-up is at 9:30.", "The stand-up is at 10:30."),
    ("Maria owns the billing service.", "Jonas owns the billing service."),
    ("Maria reports to Jonas.", "Jonas reports to Maria."),
    ("Alice manages Bob.", "Bob manages Alice."),
    ("Ask Priya about the audit.", "Ask Kenji about the audit."),
    ("The brother of Maria lives in Berlin.", "Maria lives in Berlin."),
    ("Maria lives in Berlin.", "The brother of Maria lives in Berlin."),
    ("The office is in Berlin.", "The office is in Hamburg."),
    ("We use Redis for caching.", "We do not use Redis for caching."),
    ("We don't use Redis for caching.", "We use Redis for caching."),
    ("The user never drinks coffee.", "The user drinks coffee."),
    ("Requests without a token are served.", "Requests with a token are served."),
    ("There are no tests for the parser.", "There are tests for the parser."),
    ("The build fails unless the cache is warm.", "The build fails if the cache is warm."),
    ("The user can read the archive.", "The user can't read the archive."),
    ("Logging is enabled in production.", "Logging is disabled in production."),
    ("The firewall allows port 22.", "The firewall denies port 22."),
    ("Migrate before the deploy.", "Migrate after the deploy."),
    ("The change increased the latency.", "The change decreased the latency."),
    ("All tests pass on Windows.", "Some tests pass on Windows."),
    ("Deploys run on Fridays.", "Deploys run only on Fridays."),
    ("Reviews are required for the core.", "Reviews might be required for the core."),
    ("We use Kafka for events.", "We plan to use Kafka for events."),
    ("We use Kafka for events.", "We used Kafka for events."),
    ("The server is in Frankfurt.", "The server was in Frankfurt."),
    ("We use Redis for sessions.", "Do we use Redis for sessions?"),
    ("If it rains, we stay at home.", "We stay at home."),
    ("I like tea, I do not like coffee.", "I do not like tea, I like coffee."),
    ("The project requires Python 3.11.", "The project requires Python 3.12."),
    ("The bug is fixed in v1.2.3.", "The bug is fixed in v1.2.4."),
    ("The bug is tracked as ABC-123.", "The bug is tracked as ABC-124."),
    ("The parser lives in src/a/parser.py.", "The parser lives in src/b/parser.py."),
    ("Call parse_config to read it.", "Call parse_query to read it."),
    ("The docs are at https://example.com/a.", "The docs are at https://example.com/b."),
    ("The user prefers tea.", "The user prefers coffee."),
    ("The user has a dog.", "The user wants a dog."),
    ("The user wants a dog.", "The user has a dog."),
    ("The meeting room is on the left.", "The meeting room is on the right."),
    ("We use Google Cloud for storage.", "We use Google for storage."),
    ("I love the new editor.", "She loves the new editor."),
    ("The service is written in C.", "The service is written in C++."),
    ("The tests ran 👍", "The tests ran 👎"),
    ("The design is important to the team.", "The team imports the design."),
    ("我们使用Redis缓存。", "我们不使用Redis缓存。"),
    ("会议在三月五日。", "会议在三月六日。"),
    ("Wir nutzen Redis für Sitzungen.", "Wir nutzen kein Redis für Sitzungen."),
    ("Nous utilisons Redis.", "Nous n'utilisons pas Redis."),
    ("Мы используем Redis.", "Мы не используем Redis."),
    ("Biz Redis kullanıyoruz.", "Biz Redis kullanmıyoruz."),
    ("We use Redis.", "We use Redis, but not for sessions."),
    ("The key rotates every 30 days.", "The key rotates every 30 days except in staging."),
    ("Alice told Bob that Carol likes tea.", "Alice likes tea."),
    ("The plan to use Kafka was rejected.", "Use Kafka."),
    ("Bob's address is bob@x.example.", "Bob's address is bob@y.example."),
    ("The flag is a > b.", "The flag is a < b."),
    ("Set timeout=30.", "Set timeout=60."),
    ("The user plays the guitar.", "Paris is the capital of France."),
    ("The cat chased the dog.", "The dog chased the cat."),
    ("Flights from Oslo to Rome are late.", "Flights from Rome to Oslo are late."),
    ("Migrate from MySQL to Postgres.", "Migrate from Postgres to MySQL."),
    ("The servers failed at noon.", "The server failed at noon."),
    ("You should rotate the key.", "You can rotate the key."),
    ("The user was born on 1990-01-02.", "The user was born on 1990-02-01."),
    ("The lease ends in 2026.", "The lease ends in 2027."),
    ("Node 20 is required.", "Node 22 is required."),
    ("Pin the image to 3.11-slim.", "Pin the image to 3.11."),
    ("The limit is 10 k rows.", "The limit is 10 rows."),
    ("The fan runs at 5 V.", "The fan runs at 12 V."),
    ("The buffer holds 4 KiB.", "The buffer holds 4 kB."),
    ("The box weighs 5 kg.", "The box weighs 5 lb."),
    ("The cache is 512 MB large.", "The cache is 512 MiB large."),
    ("It takes 5 minutes.", "It takes 5 hours."),
    ("The rate is 0.5 %.", "The rate is 5 %."),
    ("The offset is +2.", "The offset is -2."),
    ("Use --force for the deploy.", "Use force for the deploy."),
    ("Keep the env file.", "Keep the .env file."),
    ("Copy *.py files.", "Copy .py files."),
    ("Ask US for the licence.", "Ask us for the licence."),
    ("The test isn't flaky.", "The test is flaky."),
    ("Ada won't join the call.", "Ada will join the call."),
    ("Neither Ada nor Bob reviews it.", "Ada and Bob review it."),
    ("Hardly anybody uses the export.", "Anybody uses the export."),
    ("Der Dienst ist schon gut.", "Der Dienst ist schön gut."),
    ("f(x) is slow.", "f[x] is slow."),
    ("Maria Lopez owns billing.", "Maria Gomez owns billing."),
    ("The tea is for Ann Lee.", "The tea is for Anne Lee."),
]

SAME = [
    ("The user prefers dark mode.", "the user prefers dark mode"),
    ("The user prefers dark mode.", "Note: the user prefers dark mode."),
    ("The user prefers dark mode.", "Note that the user prefers dark mode."),
    ("The user prefers dark mode.", "- The user prefers dark mode"),
    ("The user prefers dark mode.", "# The user prefers “dark mode”"),
    ("We don't use Redis.", "We do not use Redis."),
    ("You can’t delete it, it's locked.", "You cannot delete it: it is locked."),
    ("We won't ship it; we're late.", "We will not ship it, we are late."),
    ("The upload limit is 5 MB.", "The upload limit is five MB."),
    ("The upload limit is 5 MB.", "The upload limit is 5MB."),
    ("The server keeps 1,000 sessions.", "The server keeps 1000 sessions."),
    ("Maria is playing the guitar.", "Maria plays the guitar."),
    ("A man is cutting an onion.", "The man cuts the onion."),
    ("我们使用Redis缓存。", "我们使用Redis缓存"),
]

# Old, new: near enough to be named, but the new text says more, less, or the contrary of the old one.
NEAR = [
    ("The user prefers dark mode in the editor.", "The user prefers dark mode."),
    ("The user prefers dark mode.", "The user prefers dark mode. The font is Fira Code."),
    ("We use Redis for caching.", "For caching, we use Redis."),
    ("We use Redis for caching.", "We use Redis for caching in production."),
    ("We use MySQL.", "We now use Postgres instead of MySQL."),
    ("The user drinks coffee.", "The user no longer drinks coffee."),
    ("The meeting is on Monday.", "Correction: the meeting is on Tuesday."),
    ("We use Redis.", "Do we use Redis?"),
]


@pytest.mark.parametrize(("one", "other"), [*DIFFERENT, *NEAR])
def test_one_detail_makes_two_memories(one: str, other: str) -> None:
    """Another number, unit, date, name, negation, word or order of words is another statement, either way round."""
    assert not say_the_same(one, other)
    assert not say_the_same(other, one)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_another_spelling_says_the_same(one: str, other: str) -> None:
    """Letter case, final marks, quotes, list marks, articles, contractions and the form of a number do not count."""
    assert say_the_same(one, other)
    assert say_the_same(other, one)


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        ("Ada likes tea.", "Ada likes tea and coffee.", "Ada likes tea and coffee."),
        ("Ada likes tea and coffee.", "Ada likes tea.", "Ada likes tea and coffee."),
        ("Ada likes tea. She plays chess.", "Ada likes tea in Rome.", "Ada likes tea in Rome. She plays chess."),
        ("Maria owns billing.", "maria owns billing! It is on port 80.", "Maria owns billing. It is on port 80."),
        ("It runs on port 80.", "It runs on port 8080.", "It runs on port 80. It runs on port 8080."),
        ("We deploy.", "We deploy only on Fridays.", "We deploy. We deploy only on Fridays."),
        ("We deploy unless it rains.", "We deploy.", "We deploy unless it rains. We deploy."),
        ("- a b c\n- d e f", "- D e f\n- g h i", "- a b c\n- d e f\n- g h i"),
        ("One.\n\nTwo.", "Three.", "One.\n\nTwo.\nThree."),
        ("Ask US law.", "Ask us law.", "Ask US law. Ask us law."),
        ("Dr. Ada likes tea.", "Dr. Bob likes tea.", "Dr. Ada likes tea. Dr. Bob likes tea."),
        ("Acme Inc. pays.", "Acme Inc. pays. Bob pays.", "Acme Inc. pays. Bob pays."),
        ("Ada lives in Graz", "She plays chess", "Ada lives in Graz. She plays chess."),
        ("会议。", "结束。会议。", "会议。 结束。"),
        ("", "new", "new"),
        ("old", " \n", "old"),
    ],
)
def test_a_merged_text_says_each_thing_once(old: str, new: str, both: str) -> None:
    """What is new follows; what only adds to a sentence takes its place; nothing that restricts another is lost."""
    assert merged_text(old, new) == both


def test_merging_leaves_code_whole() -> None:
    """A fenced block is one thing: its lines are not taken out for standing in another block."""
    old, new = "Start:\n```\nrun\nend\n```", "Stop:\n```\nhalt\nend\n```"
    assert merged_text(old, new) == f"{old}\n{new}"
    assert merged_text(f"{old}\n{new}", new) == f"{old}\n{new}"


def test_two_additions_to_one_sentence_are_both_kept() -> None:
    """The first takes the sentence's place, and the second stands behind it."""
    both = merged_text("Ada drinks tea", "Ada drinks tea and milk. Ada drinks tea at noon.")
    assert both == "Ada drinks tea and milk. Ada drinks tea at noon."
    assert merged_text("1", "1? 1 1") == "1? 1 1."


@quick
@given(st.text("ab1 .!?\n-`不。", max_size=80) | st.text(max_size=80), st.text("ab1 .!?\n-`不。", max_size=80))
def test_merging_again_adds_nothing(old: str, new: str) -> None:
    """Whatever the texts are, a merged text holds both already, and a text merged with itself is that text."""
    both = merged_text(old, new)
    assert merged_text(both, new) == merged_text(both, old) == both
    assert merged_text(old, old) == old
    assert say_the_same(old, old)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 50_000,
        "a." * 25_000,
        "word " * 10_000,
        "We use X instead of " * 2_000,
        "`" * 50_000,
        "\n" * 50_000,
        " " * 50_000 + "x",
        "1," * 25_000,
        "1" * 50_000,
        "- " * 20_000,
        "We now use it. " * 3_000,
    ],
)
def test_long_texts_are_answered(text: str) -> None:
    """Endless words, sentences and lists come to an end, and are the same as themselves only."""
    assert say_the_same(text, text)
    assert not say_the_same(text, f"Something else entirely. {text[:200]}")
    assert merged_text(text, text) == text
