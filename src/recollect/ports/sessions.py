"""What the store promises of sessions: their state and their observations, each user's own."""

from __future__ import annotations
