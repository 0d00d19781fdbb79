"""What is wrong with bytes that are not UTF-8: the one sentence of every door that takes text."""

from __future__ import annotations


def fault(data: bytes) -> str | None:
    """Return the message on the first bytes that are not UTF-8, with a remedy; None where all of them are."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        where = f"byte {error.start + 1} is 0x{data[error.start]:02x}"
        return f"It is not UTF-8: {where}. Save it as UTF-8, or convert it, as with `iconv -f LATIN1 -t UTF-8`."
    return None


def fault_of_text(text: str) -> str | None:
    """Return that of a text whose bytes the system has escaped (`surrogateescape`); None for whole text."""
    try:
        return fault(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # half of a character, which no byte was
        return None
