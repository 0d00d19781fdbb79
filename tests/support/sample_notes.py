"""A small store of notes as agents keep them, with their dates and importance, and questions to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from recollect.domain.enums import FactType
from recollect.domain.requests import Draft

FIRST: Final = datetime(2025, 2, 3, 9, tzinfo=UTC)

NOTES: Final = (
    "The billing service retries a failed card charge three times, then parks the invoice in the dunning queue.",
    "We chose PostgreSQL over MySQL for the ledger because of transactional DDL.",
    "Marta prefers pull requests below 300 lines and reviews them in the morning.",
    "The nightly export to the warehouse runs at 02:30 UTC and must end before the 05:00 report.",
    "Feature flags live in flags.yaml; a flag that is older than two releases is removed.",
    "Error E4417 means that the depot's label printer has no paper.",
    "The mobile app caches the last 50 deliveries so that drivers can work without a network.",
    "Decision: no GraphQL for partners, they get REST with cursor pagination.",
    "The staging cluster has two nodes only; load tests belong on the perf cluster.",
    "Redis evicts with allkeys-lru since the outage in which sessions filled the memory.",
    "Jonas is on call in even weeks, Priya in odd ones.",
    "Images are resized by a worker named thumbler, which needs 2 GB of memory for panoramas.",
    "The search index is rebuilt with scripts/reindex_all.sh, which takes about forty minutes.",
    "Customers in Norway see prices with VAT, all others without.",
    "The contract with the map provider forbids storing geocoding results for more than 30 days.",
    "Unit tests must not touch the network; the socket fixture enforces it.",
    "The password reset mail goes out through the provider Postbird, all other mail through our own server.",
    "A driver's route is planned again when a stop is late by more than 20 minutes.",
    "The Android build needs JDK 17; with 21 the annotation processor crashes.",
    "Timestamps are stored in UTC and shown in the depot's own time zone.",
    "The old importer drops rows without a postcode silently; the new one lists them.",
    "Release notes are written by whoever merges last on Thursday.",
    "The kiosk in hall B restarts every night because its driver leaks file handles.",
    "Rate limit of the public API: 600 requests a minute and key, bursts of 50.",
    "We keep raw sensor readings for 14 days and hourly means for three years.",
    "The designer wants all icons from the set Phosphor, outlined, 1.5 px.",
    "Terraform state is locked with DynamoDB; a stuck lock is released by the platform team only.",
    "Parcel dimensions come in millimetres from the scanner and in inches from the American scale.",
    "The chat widget must stay below 40 kB since the landing page is slow on phones.",
    "Helm chart values of production are reviewed by two people.",
    "The fraud score above 80 sends an order to manual review.",
    "Kafka topic orders.v2 has twelve partitions, keyed by customer.",
    "The intern project on forecasting showed that the weather explains a tenth of the volume.",
    "The backup of the ledger is restored on a spare machine each first Monday to prove that it works.",
    "Elena owns the relationship with the customs office in Rotterdam.",
    "The barcode library cannot read Code 128 below 200 dpi.",
    "The accounting period closes on the third working day; nothing may be booked into it later.",
    "A canary gets five percent of the traffic for an hour before a rollout goes on.",
    "Our linter forbids default exports in TypeScript.",
    "The warehouse robots speak MQTT with quality of service 1, so that messages may come twice.",
)
QUESTIONS: Final = (
    ("what happens when a card payment fails?", 0),
    ("why PostgreSQL for the ledger?", 1),
    ("how large may a pull request be for Marta?", 2),
    ("when does the nightly export run?", 3),
    ("where are feature flags kept?", 4),
    ("E4417", 5),
    ("can drivers use the app offline?", 6),
    ("do partners get GraphQL?", 7),
    ("where should load tests run?", 8),
    ("redis eviction policy", 9),
    ("who is on call in odd weeks?", 10),
    ("memory of the thumbler worker", 11),
    ("scripts/reindex_all.sh", 12),
    ("which customers see prices with VAT?", 13),
    ("how long may geocoding results be stored?", 14),
    ("may unit tests use the network?", 15),
    ("who sends the password reset mail?", 16),
    ("which JDK does the Android build need?", 18),
    ("public API rate limit", 23),
    ("how long are sensor readings kept?", 24),
    ("who can release a stuck Terraform lock?", 26),
    ("partitions of the Kafka topic orders.v2", 31),
    ("how do we know that the ledger backup works?", 33),
    ("who talks to the customs office?", 34),
    ("share of traffic for a canary", 37),
)
FOREIGN: Final = (
    "recipe for a lemon cake",
    "who won the football match yesterday?",
    "lyrics of a song about the sea",
    "capital of Australia",
    "how do I prune an apple tree?",
)


def drafts() -> list[tuple[datetime, Draft]]:
    """Return each note with its date, over a year, of kinds and importances that decay differently."""
    kinds = tuple(FactType)
    return [
        (
            FIRST + timedelta(days=9 * place),
            Draft(content=text, fact_type=kinds[place % 4], importance=(place * 7 % 11) / 10),
        )
        for place, text in enumerate(NOTES)
    ]
