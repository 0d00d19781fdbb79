"""What is wrong with bytes that are not UTF-8: the one sentence of every door that takes text."""

from __future__ import annotations


def utf8_fault(data: bytes) -> str | None:
    """Return the message on the first bytes that are not UTF-8, with a remedy; None for valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        where = f"byte {error.start + 1} is 0x{data[error.start]:02x}"
        return f"It is not UTF-8: {where}. Save it as UTF-8, or convert it, as with `iconv -f LATIN1 -t UTF-8`."
    return None


def utf8_fault_of_text(text: str) -> str | None:
    """Return the message on a text that holds bytes escaped by `surrogateescape`; None where it holds none."""
    try:
        return utf8_fault(text.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:  # half of a character, which no byte was
        return None
