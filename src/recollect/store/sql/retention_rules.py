"""Rules of retention: after how many days which memories of a team and its projects are removed for good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, false, insert, or_, select

from recollect.domain.enums import FactType
from recollect.domain.leaving import RetentionRule
from recollect.store.sql.database import Database
from recollect.store.sql.tables import memory, namespace, retention_rule

_ALL = select(retention_rule).order_by(*retention_rule.primary_key.columns)


@dataclass(frozen=True, slots=True)
class RetentionRuleRows:
    """Reads the rules of a database."""

    _database: Database

    def of_teams(self, teams: Sequence[str] | None = None) -> list[RetentionRule]:
        """Return the rules of some teams, or of all."""
        query = _ALL if teams is None else _ALL.where(retention_rule.c.team.in_(teams))
        return [_rule_of(row) for row in self._database.rows(query)]

    def namespaces(self, team: str) -> list[str]:
        """Return the namespaces of a team and its projects in which something was ever stored."""
        name = namespace.c.name
        mine = or_(name == f"team:{team}", name.startswith(f"project:{team}/", autoescape=True))
        return [row.name for row in self._database.rows(select(name).where(mine).order_by(name))]


@dataclass(frozen=True, slots=True)
class RetentionRuleWriting:
    """Writes rules in an open transaction."""

    _connection: Connection

    def put(self, rule: RetentionRule) -> None:
        """Write a rule in place of the rule with the same scope."""
        self.drop(rule)
        values = {name: getattr(rule, name) for name in ("team", "days", "set_by", "set_at")}
        values |= {"project": rule.project or "", "fact_type": str(rule.fact_type or "")}
        self._connection.execute(insert(retention_rule).values(values))

    def drop(self, rule: RetentionRule) -> bool:
        """Remove the rule with this scope; say whether there was any."""
        own = retention_rule.c
        kind = str(rule.fact_type or "")
        here = (own.team == rule.team, own.project == (rule.project or ""), own.fact_type == kind)
        return bool(self._connection.execute(delete(retention_rule).where(*here)).rowcount)


def outlived(rules: Sequence[RetentionRule], name: str, now: datetime) -> ColumnElement[bool]:
    """Select the memories of the namespace `name` that were last written before their rule keeps them.

    A rule about a project wins over those about its team; of these, a rule about a kind over a rule about all kinds.
    """
    days = days_by_kind(rules, name)
    kinds = {
        limit: [str(kind) for kind, of_kind in days.items() if of_kind == limit] for limit in {*days.values()} if limit
    }
    return or_(
        false(),
        *(
            and_(memory.c.fact_type.in_(some), memory.c.updated_at < now - timedelta(days=limit))
            for limit, some in sorted(kinds.items())
        ),
    )


def days_by_kind(rules: Sequence[RetentionRule], name: str) -> Mapping[FactType, float]:
    """Return the days after which each kind of memory in a namespace is removed; a kind without a rule is absent."""
    scope, _, place = name.partition(":")
    team, _, project = place.partition("/") if scope == "project" else (place, "", "")
    mine = [rule for rule in rules if rule.team == team and rule.project in (None, project or None)]
    found: dict[FactType, float] = {}
    for kind in FactType:
        fitting = [rule for rule in mine if rule.fact_type in (None, kind)]
        if fitting:
            best = max(fitting, key=lambda rule: (rule.project is not None, rule.fact_type is not None))
            found[kind] = best.days
    return found


def _rule_of(row: Row[tuple[object, ...]]) -> RetentionRule:
    kind = FactType(row.fact_type) if row.fact_type else None
    return RetentionRule(row.team, row.project or None, kind, row.days, row.set_by, row.set_at)
