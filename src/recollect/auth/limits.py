"""Limits as requests meet them: what a principal uses, and the fields by which an answer tells how often to ask."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from recollect.app import App
from recollect.auth.principal import Principal
from recollect.domain.limits import HELD, Holder, HolderKind, HolderUse, Resource, ResourceUse, Usage
from recollect.errors import TooManyRequests
from recollect.store.sql.request_rates import PERIODS, Allowance, Rate

POLICY: Final = "RateLimit-Policy"
"""The field of an answer that names the limits on requests (IETF draft-ietf-httpapi-ratelimit-headers)."""
LEFT: Final = "RateLimit"
"""The field of an answer that says how many requests are left, and after how many seconds all are."""


def usage_of(app: App, principal: Principal) -> Usage:
    """Return the limits of a principal and of their teams, and what is used of them."""
    holders = [Holder(HolderKind.USER, principal.user), *(Holder(HolderKind.TEAM, team) for team in principal.teams)]
    now, found = app.clock(), app.limits.read(holders)
    rates = app.limits.rates.read([Allowance(holder, limits) for holder, (limits, _) in found.items()])
    asked = {(rate.holder, rate.resource): rate for rate in rates}
    each = []
    for holder, (limits, used) in found.items():
        resources = HELD[:2] if holder.kind is HolderKind.USER else HELD
        uses = [ResourceUse(resource, used[resource], limits.get(resource)) for resource in resources]
        for resource in PERIODS:
            if (rate := asked.get((holder, resource))) is not None:
                full_at = now + timedelta(seconds=rate.full_after)
                uses.append(ResourceUse(resource, rate.used, rate.most, full_at if rate.used else None))
        each.append(HolderUse(holder.kind, holder.name, tuple(uses)))
    return Usage(tuple(each))


def take_request(app: App, principal: Principal, allowances: Sequence[Allowance]) -> dict[str, str]:
    """Count a request towards allowances, and return the fields of the answer that say what is left of them.

    Raises `TooManyRequests`, which has these fields too, where an allowance is used up. Only members learn what a team
    uses.
    """
    taken, rates = app.limits.rates.take(allowances)
    fields = rate_fields(rate for rate in rates if principal.may_see_use(rate.holder))
    if taken:
        return fields
    full = max(rates, key=lambda rate: rate.again_after)
    whose = "your limit" if full.holder.kind is HolderKind.USER else f"the limit of {full.holder.words}"
    why = f"{whose}, {full.most:,} {full.resource.words}, is used up. "
    error = TooManyRequests(max(1.0, math.ceil(full.again_after)), why)
    error.fields = fields
    raise error


def rate_fields(rates: Iterable[Rate]) -> dict[str, str]:
    """Return the fields of an answer for some rates, each a list of structured fields (RFC 9651); none for no rate."""
    named = [(f"{rate.holder.kind}-{_period(rate.resource)}", rate) for rate in rates]
    if not named:
        return {}
    policies = (f'"{name}";q={rate.most};w={PERIODS[rate.resource]}' for name, rate in named)
    left = (f'"{name}";r={rate.most - rate.used};t={math.ceil(rate.full_after)}' for name, rate in named)
    return {POLICY: ", ".join(policies), LEFT: ", ".join(left)}


def _period(resource: Resource) -> str:
    return resource.rpartition("_")[2]
