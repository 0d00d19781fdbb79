"""Expressions of SQL that databases spell in different ways; each is written here as most of them do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import Dialect as Language
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction, ReturnTypeFromArgs
from sqlalchemy.types import JSON, Text, UserDefinedType


class folded(GenericFunction[str]):  # noqa: N801 - a function of SQL
    """A text without its letter case, whatever its alphabet; written `lower`."""

    name = "lower"
    identifier = "folded"
    type = Text()
    inherit_cache = True


class unindexed(ReturnTypeFromArgs[Any]):  # noqa: N801 - a function of SQL
    """A value as it is, which the planner should not look up in an index."""

    inherit_cache = True


class walked(ReturnTypeFromArgs[Any]):  # noqa: N801 - a function of SQL
    """The number of a namespace whose memories are walked in the index that overviews are read from.

    That one holds so many columns that it would tempt every other query to walk it too, so it begins with this.
    """

    inherit_cache = True


class Listed(UserDefinedType[Iterable[Any]]):
    """The type of a parameter that holds any number of numbers or texts, so that one statement serves for all."""

    cache_ok = True

    def bind_processor(self, dialect: Language) -> Callable[[Any], Any]:
        """Pass an array on, or JSON where a database has none."""
        return (lambda values: json.dumps(list(values))) if dialect.name == "sqlite" else list


class any_of(GenericFunction[bool]):  # noqa: N801 - a function of SQL
    """A condition that the first argument is among the values of the second, a parameter of the type `Listed`.

    It is not declared a truth value: where a database has none, that is compared with 1, which no index serves.
    """

    inherit_cache = True


class json_rows(GenericFunction[Any]):  # noqa: N801 - a function of SQL
    """The values of its arguments in each row of a selection, as a list of lists in no order; None without rows."""

    type = JSON()
    inherit_cache = True


@compiles(json_rows)
def _aggregated(element: json_rows, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_agg(json_build_array({compiler.process(element.clauses, **options)}))"


@compiles(any_of)
def _in_array(element: any_of, compiler: SQLCompiler, **options: Any) -> str:
    """Write `any_of` for PostgreSQL, which has arrays."""
    value, listed = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{value} = ANY({listed})"


@compiles(walked)
@compiles(unindexed)
def _itself(element: ReturnTypeFromArgs[Any], compiler: SQLCompiler, **options: Any) -> str:
    """Write the argument alone, where a database needs nothing around it."""
    return compiler.process(element.clauses, **options)
