"""Expressions of SQL that databases spell in different ways; each is written here as most of them do."""

from __future__ import annotations

from typing import Any

from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import Integer, Text


class folded(GenericFunction[str]):  # noqa: N801 - a function of SQL
    """A text without its letter case, whatever its alphabet."""

    type = Text()
    inherit_cache = True


class unindexed(GenericFunction[int]):  # noqa: N801 - a function of SQL
    """A number as it is, which the planner should not look up in an index."""

    type = Integer()
    inherit_cache = True


@compiles(folded)
def _lower(element: folded, compiler: SQLCompiler, **options: Any) -> str:
    return f"lower({compiler.process(element.clauses, **options)})"


@compiles(unindexed)
def _itself(element: unindexed, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)
