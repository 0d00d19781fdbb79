"""Bytes that are not UTF-8 are named with their place, and with what helps."""

from __future__ import annotations

import pytest

from recollect.text.utf8 import utf8_fault, utf8_fault_of_text


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"\xff", "byte 1 is 0xff"),
        (b"caf\xe9 au lait", "byte 4 is 0xe9"),
        ("naïve ".encode() + b"\xe2\x82", "byte 8 is 0xe2"),
        (b"ok\xed\xa0\x80", "byte 3 is 0xed"),
        ("whole".encode("utf-16"), "byte 1 is 0xff"),
    ],
)
def test_the_first_bad_byte_is_named(data: bytes, where: str) -> None:
    """The sentence counts bytes from 1 and says how to convert; of a text whose bytes are escaped it says the same."""
    told = utf8_fault(data)
    assert told is not None
    assert told.startswith(f"It is not UTF-8: {where}. Save it as UTF-8")
    assert utf8_fault_of_text(data.decode("utf-8", "surrogateescape")) == told


@pytest.mark.parametrize("text", ["", "plain", "naïve 日本 🚀", "\ufeffmarked"])
def test_whole_text_has_no_fault(text: str) -> None:
    """Text of any script passes."""
    assert utf8_fault(text.encode()) is None
    assert utf8_fault_of_text(text) is None
