"""Twins: what a new text is to one near it in meaning, by a table of pairs written by hand, and merging of both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.policy.twins import NEAR, NEAR_CORRECTION, Relation, merged, relate

quick = hypothesis_settings(deadline=None, database=None)
CLOSE = 0.93

# Old, new: one detail is another, or a word that turns the sense has come or gone.
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
]

SAID_AGAIN = [
    ("The user prefers dark mode.", "the user prefers dark mode"),
    ("The user prefers dark mode.", "Note: the user prefers dark mode."),
    ("The user prefers dark mode.", "- The user prefers dark mode"),
    ("The user prefers dark mode in the editor.", "The user prefers dark mode."),
    ("We use Redis for caching.", "We now use Redis for caching."),
    ("We use Redis for caching.", "For caching, we use Redis."),
    ("We don't use Redis.", "We do not use Redis."),
    ("The upload limit is 5 MB.", "The upload limit is five megabytes."),
    ("The upload limit is 5 MB.", "The upload limit is 5MB."),
    ("The plan costs $20 per month.", "The plan costs 20 dollars per month."),
    ("Twenty-five people came to the party.", "25 people came to the party."),
    ("The release is on 3 May 2024.", "The release is on May 3rd, 2024."),
    ("The release is on the 3rd of May 2024.", "The release is on 2024-05-03."),
    ("The server keeps 1,000 sessions.", "The server keeps 1000 sessions."),
    ("Eighty percent of the tests pass.", "80% of the tests pass."),
    ("Maria is playing the guitar.", "Maria plays the guitar."),
    ("A man plays a guitar.", "The man is playing the guitar."),
    ("The orders live in Postgres.", "The orders live in PostgreSQL."),
    ("Maria likes tea. Jonas likes coffee.", "Jonas likes coffee."),
    ("Maria likes tea. Jonas likes coffee.", "Jonas likes coffee. Maria likes tea."),
    ("In May we moved the office to Berlin.", "We moved the office to Berlin."),
    ("我们使用Redis缓存。", "我们使用Redis缓存"),
]

SAID_AND_MORE = [
    ("The user prefers dark mode.", "The user prefers dark mode in the editor and in the terminal."),
    ("The user prefers dark mode.", "The user prefers dark mode. The font is Fira Code."),
    ("We use Redis for caching.", "We use Redis for caching in production."),
    ("We use Redis for caching.", "In production we use Redis for caching."),
    ("The child is riding a horse.", "The young child is riding a horse."),
    ("The cache expires.", "The cache expires after 5 minutes."),
    ("The team meets at 9 am.", "The team meets at 9 am on Mondays."),
    ("Maria likes tea.", "Maria and Jonas like tea."),
    ("We use Redis for caching.", "We use Redis in production."),
    ("Maria owns billing. She lives in Berlin.", "Maria owns billing. She plays chess."),
    ("The server is in Frankfurt.", "The server is in Frankfurt, behind a proxy."),
]

# Old, new: what the older text claims, and nothing else of weight, holds no longer.
CORRECTED = [
    ("We use MySQL.", "We now use Postgres instead of MySQL."),
    ("The project uses MySQL for orders.", "We now use Postgres for orders instead of MySQL."),
    ("We use MySQL for orders.", "We now use Postgres instead of MySQL."),
    ("We use MySQL.", "Instead of MySQL, we use Postgres."),
    ("We use MySQL.", "We switched from MySQL to Postgres."),
    ("The team uses MySQL.", "On 3 May we moved from MySQL to Postgres."),
    ("We use MySQL.", "We have migrated from MySQL to Postgres because of licences."),
    ("The orders database runs on MySQL.", "We migrated the orders database from MySQL to Postgres."),
    ("Maria lives in Berlin.", "Maria moved from Berlin to Hamburg."),
    ("Our database is MySQL.", "Postgres replaces MySQL as our database."),
    ("We use MySQL.", "Postgres replaced MySQL."),
    ("We use Travis for builds.", "We replaced Travis with Buildkite."),
    ("We use Travis.", "Travis was replaced by Buildkite."),
    ("The user drinks coffee.", "The user no longer drinks coffee."),
    ("The user drinks coffee in the morning.", "The user does not drink coffee anymore."),
    ("The API is public.", "The API is no longer public."),
    ("The user uses vim.", "I stopped using vim."),
    ("The user plays tennis.", "The user stopped playing tennis."),
    ("We use Jenkins.", "We dropped Jenkins last month."),
    ("The user likes coffee.", "The user likes not coffee but tea."),
    ("The user prefers tabs.", "The user prefers spaces, not tabs."),
    ("The user prefers tabs.", "The user now prefers spaces rather than tabs."),
    ("The retry limit is 3.", "The retry limit was changed from 3 to 5."),
    ("The retry limit is 3.", "We changed the retry limit from 3 to 5."),
    ("The upload limit is 3 MB.", "The upload limit was raised to 5 MB."),
    ("The upload limit is 3 MB.", "The upload limit is now 5 MB."),
    ("The meeting is on Monday.", "Correction: the meeting is on Tuesday."),
    ("The user's favourite colour is red.", "Correction: the user's favourite colour is blue."),
    ("Maria lives in Berlin.", "Actually, Maria lives in Hamburg."),
    ("We deploy on Fridays.", "As of May we deploy on Tuesdays."),
    ("The database is MySQL.", "The database is now Postgres."),
    ("Maria is 30 years old.", "Maria is now 31 years old."),
    ("The user works at Google.", "The user now works at Meta."),
    ("The project uses Python 3.11.", "The project was upgraded from Python 3.11 to 3.12."),
    ("The meeting is on Monday.", "The meeting was moved from Monday to Tuesday."),
    ("The service returns XML.", "The service now returns JSON instead of XML."),
    ("The deadline is 3 May.", "The deadline is now 5 May."),
]

# Old, new: the new text corrects something, but not what the old one claims.
NOT_CORRECTED = [
    ("We use Postgres.", "We now use Postgres instead of MySQL."),
    ("We moved from MySQL to Postgres.", "We now use Postgres instead of MySQL."),
    ("We no longer use MySQL.", "We now use Postgres instead of MySQL."),
    ("We do not use MySQL.", "We switched from MySQL to Postgres."),
    ("We used MySQL until 2020.", "We switched from MySQL to Postgres."),
    ("MySQL was founded in Sweden.", "We now use Postgres instead of MySQL."),
    ("MySQL has a query cache.", "We no longer use MySQL."),
    ("The billing service uses MySQL.", "The search service now uses Elastic instead of MySQL."),
    ("The billing service uses MySQL.", "We now use Postgres instead of MySQL."),
    ("We use MySQL for reports.", "We now use Postgres for orders instead of MySQL."),
    ("We use MySQL and deploy on Fridays.", "We now use Postgres instead of MySQL."),
    ("We use MySQL. The user likes tea.", "We now use Postgres instead of MySQL."),
    ("We met a customer in Berlin.", "On 3 May we moved from Berlin to Hamburg."),
    ("Room A seats twenty people.", "On 3 May we moved from room A to room B."),
    ("Jonas lives in Berlin.", "Maria moved from Berlin to Hamburg."),
    ("Tom lives in Berlin.", "Maria now lives in Hamburg."),
    ("Maria works in Berlin.", "Maria moved from Berlin to Hamburg."),
    ("The user owns a dog.", "The user now owns a cat."),
    ("We use Redis.", "We now also use Kafka."),
    ("We use Redis.", "We now use Kafka."),
    ("Maria is a teacher.", "Maria is now a mother."),
    ("The build is fast.", "The build is now green."),
    ("The user drinks tea.", "The user no longer drinks coffee."),
    ("Jonas drinks coffee.", "The user no longer drinks coffee."),
    ("We use MySQL.", "We plan to use Postgres instead of MySQL."),
    ("We use MySQL.", "Should we use Postgres instead of MySQL?"),
    ("We use MySQL.", "We never switched from MySQL to Postgres."),
    ("We use MySQL.", "If we use Postgres instead of MySQL, the tests break."),
    ("We use MySQL.", "We did not stop using MySQL."),
    ("We use MySQL.", "We use not only MySQL but also Postgres."),
    ("The retry limit is 4.", "The retry limit was changed from 3 to 5."),
    ("The retry limit is 5.", "The retry limit was changed from 3 to 5."),
    ("The upload limit is 3 MB.", "The download limit was changed from 3 MB to 5 MB."),
    ("The upload limit is 3 MB.", "The upload limit is 5 MB."),
    ("We deploy on Fridays.", "As of May we meet on Tuesdays."),
    ("The user likes coffee.", "The user does not like coffee."),
    ("The service returns XML and JSON.", "The service now returns JSON instead of XML."),
    ("The user is allergic to nuts and shellfish.", "The user is no longer allergic to nuts."),
    ("The user eats meat.", "The user no longer eats red meat."),
    ("We deploy with Docker.", "We no longer deploy with Docker on Fridays."),
    ("The staging server runs on Jenkins.", "CI moved from Jenkins to Buildkite."),
]


@pytest.mark.parametrize(("old", "new"), DIFFERENT)
def test_one_detail_makes_two_memories(old: str, new: str) -> None:
    """A changed number, unit, date, name, negation or noun is another statement, however near."""
    assert relate(new, old, 0.99) is Relation.OTHER


@pytest.mark.parametrize(("old", "new"), SAID_AGAIN)
def test_what_is_known_is_not_stored_again(old: str, new: str) -> None:
    """Another case, spelling, order of clauses or form of a number, or less of it, says nothing new."""
    assert relate(new, old, CLOSE) is Relation.SAME


@pytest.mark.parametrize(("old", "new"), SAID_AND_MORE)
def test_more_of_the_same_is_merged(old: str, new: str) -> None:
    """What adds to the same thing and contradicts nothing belongs to it."""
    assert relate(new, old, CLOSE) is Relation.MORE


@pytest.mark.parametrize(("old", "new"), CORRECTED)
def test_a_correction_supersedes_the_claim(old: str, new: str) -> None:
    """Whoever says that a claim holds no longer corrects the memory that makes it, at a lower cosine too."""
    assert relate(new, old, CLOSE) is Relation.CORRECTION
    assert relate(new, old, NEAR_CORRECTION) is Relation.CORRECTION
    assert relate(old, new, CLOSE) is not Relation.CORRECTION


@pytest.mark.parametrize(("old", "new"), NOT_CORRECTED)
def test_a_correction_of_something_else_hides_nothing(old: str, new: str) -> None:
    """A memory about another subject, of another claim, or that already knows stays as it is."""
    assert relate(new, old, CLOSE) is not Relation.CORRECTION


@pytest.mark.parametrize(("old", "new"), [*SAID_AND_MORE, *SAID_AGAIN[2:10]])
def test_only_near_texts_are_twins(old: str, new: str) -> None:
    """Below the cosine that opens the question, only the very same words are the same."""
    assert relate(new, old, NEAR - 0.01) in (Relation.OTHER, Relation.SAME)
    assert relate(old, old, 0.0) is Relation.SAME


@pytest.mark.parametrize(("old", "new"), DIFFERENT)
def test_different_is_different_both_ways(old: str, new: str) -> None:
    """Which of two was there first does not make them one."""
    assert relate(old, new, 0.99) is Relation.OTHER


def test_merging_keeps_both() -> None:
    """The old sentences come first and the new ones follow, but for those that read the same."""
    old = "Maria owns billing. It runs on port 80."
    assert merged(old, "maria owns billing! It runs on port 8080.") == f"{old} It runs on port 8080."
    assert merged(old, "It runs on port 80.") == old
    assert merged("- a b c\n- d e f", "- D e f\n- g h i") == "- a b c\n- d e f\n- g h i"
    assert merged("Ask US law.", "Ask us law.") == "Ask US law. Ask us law."
    assert merged("Dr. Ada likes tea.", "Dr. Bob likes tea.") == "Dr. Ada likes tea. Dr. Bob likes tea."
    assert merged("", "new") == "new"


def test_merging_leaves_code_whole() -> None:
    """A fenced block is one thing: its lines are not taken out for standing in another block."""
    old, new = "Start:\n```\nrun\nend\n```", "Stop:\n```\nhalt\nend\n```"
    assert merged(old, new) == f"{old}\n{new}"


@pytest.mark.parametrize(("old", "new"), [*DIFFERENT, *SAID_AGAIN, *SAID_AND_MORE, *CORRECTED])
def test_merging_loses_no_sentence(old: str, new: str) -> None:
    """Every sentence of both stands in the merged text, or one that reads the same does."""
    both = merged(old, new)
    assert both.startswith(old)
    assert relate(new, both, 0.0) is relate(old, both, 0.0) is Relation.SAME


@quick
@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_are_related(old: str, new: str) -> None:
    """No text is too odd for an answer, a blank one included; nothing is new in what both hold."""
    assert relate(new, old, 0.9) in Relation
    assert relate("", old, 0.9) is Relation.SAME
    assert relate("We use Redis.", " \n", 0.9) is Relation.OTHER


@quick
@given(st.text(max_size=200))
def test_merging_with_itself_changes_nothing(text: str) -> None:
    """A text merged with itself is that text, and says the same as itself."""
    assert merged(text, text) == text
    assert relate(text, text, 0.0) is Relation.SAME


@quick
@given(st.text("ab1 .!?\n-`不", max_size=80), st.text("ab1 .!?\n-`不", max_size=80))
def test_merging_any_two_texts_keeps_both(old: str, new: str) -> None:
    """Whatever the texts are, what was in either is in both together, and merging again adds nothing."""
    both = merged(old, new)
    assert merged(both, new) == both
    assert both.split()[: len(old.split())] == old.split() or not old.strip()


@pytest.mark.parametrize(
    "text",
    [
        "a" * 50_000,
        "a." * 25_000,
        "word " * 10_000,
        "We use X instead of " * 2_000,
        "`" * 50_000,
        "\n" * 50_000,
        "1," * 25_000,
        "We now use it. " * 3_000,
        " not but from to" * 3_000,
    ],
)
def test_long_texts_are_answered(text: str) -> None:
    """Endless words, sentences and lists come to an end, and are the same as themselves only."""
    assert relate(text, text, 0.9) is Relation.SAME
    assert relate(text, f"Something else entirely. {text[:200]}", 0.9) in Relation
    assert merged(text, text) == text
