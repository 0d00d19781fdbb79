"""The operations of export and import, in the form that every door projects."""

from __future__ import annotations

from recollect.operations.table import Operation
from recollect.transfer.export_page import export_page
from recollect.transfer.import_batch import import_batch

TRANSFER = (
    Operation("import_batch", import_batch, destructive=True, idempotent=True),
    Operation("export_page", export_page),
)
