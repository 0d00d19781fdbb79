"""Forget: ids count only inside the caller's namespaces, and what is forgotten leaves no trace."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from callers import ADA
from recollect import App, Caller, Draft, Forget, Query, forget, recall, remember
from recollect.domain.enums import Scope
from recollect.domain.results import WriteStatus
from recollect.errors import Forbidden


def test_forget_deletes_and_says_so(app: App) -> None:
    """Forgetting a memory answers with the seed's sentence, and recall does not find it again."""
    memory_id = remember(app, Draft(content="The mascot is a quokka"), ADA).id
    assert forget(app, Forget(id=memory_id), ADA).message == f"Memory {memory_id} deleted."
    assert recall(app, Query(query="quokka"), ADA).hits == ()
    assert forget(app, Forget(id=memory_id), ADA).message == f"Memory {memory_id} not found."


def test_forget_finds_nothing_of_others(app: App) -> None:
    """A memory of another user is not found, and stays."""
    other = Caller(user="bob", team="crew", project="engine")
    memory_id = remember(app, Draft(content="Bob likes tea", scope=Scope.PERSONAL), other).id
    assert forget(app, Forget(id=memory_id), ADA).status is WriteStatus.NOT_FOUND
    assert recall(app, Query(query="tea"), other).hits[0].memory.id == int(memory_id)


def test_forgetting_nothing_waits_for_no_writer(app: App) -> None:
    """An unknown id is answered while the namespace is being written, as nothing is written for it."""
    with app.records.writing(ADA.namespace(Scope.PROJECT), ADA.user), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(forget, app, Forget(id="1999999999"), ADA)
        assert asked.result(2).status is WriteStatus.NOT_FOUND


def test_who_may_only_read_is_refused_for_any_id(app: App) -> None:
    """Whoever may write nowhere is refused, and does not learn whether there is such a memory."""
    reader = ADA.model_copy(update={"writes": ()})
    known = remember(app, Draft(content="The mascot is a quokka"), ADA).id
    for memory_id in (known, "1999999999"):
        with pytest.raises(Forbidden):
            forget(app, Forget(id=memory_id), reader)


def test_forget_takes_any_text_as_id(app: App) -> None:
    """What cannot be an id is not found, whatever it looks like."""
    for odd in ("abc", "-1", "0", "1.5", "99999999999999999999", "²", "1; DROP TABLE memory"):
        assert forget(app, Forget(id=odd), ADA).message == f"Memory {odd} not found."
