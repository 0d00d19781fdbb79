"""The protocols that operations need, and `App`, the frozen bag that carries them. Only names live here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.ports.app import App
from recollect.ports.models import Capabilities, Embedder, Fusion, Loadable, Reconcile, Rerank, TokenEmbeddings
from recollect.ports.search import LateInteraction, ShadowIndex, Term, Text, Vectors
from recollect.ports.storage import (
    Chunk,
    Entry,
    ExportReader,
    FactEntry,
    ImportedMemory,
    Records,
    RetentionRules,
    UnembeddedMemory,
    Writing,
)

if TYPE_CHECKING:
    from recollect.ports.models import Matrix as Matrix
    from recollect.ports.models import Vector as Vector
    from recollect.ports.models import Weights as Weights

__all__ = [
    "App",
    "Capabilities",
    "Chunk",
    "Embedder",
    "Entry",
    "ExportReader",
    "FactEntry",
    "Fusion",
    "ImportedMemory",
    "LateInteraction",
    "Loadable",
    "Reconcile",
    "Records",
    "Rerank",
    "RetentionRules",
    "ShadowIndex",
    "Term",
    "Text",
    "TokenEmbeddings",
    "UnembeddedMemory",
    "Vectors",
    "Writing",
]
