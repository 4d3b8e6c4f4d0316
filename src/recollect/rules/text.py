"""What a text is before it is remembered: one normal form, one checksum, an estimate of its length in tokens."""

import hashlib
import re
import unicodedata

# A run of letters, digits or marks; a single CJK character counts as a word of its own.
_CJK = "぀-ヿ㐀-䶿一-鿿가-힯豈-﫿"
_PIECES = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+|[^\w\s]|_")


def normalise(text: str) -> str:
    """The form in which a text is kept: Unicode NFC, line ends as \\n, no blank space around it."""
    return unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n").strip()


def checksum(text: str) -> str:
    """SHA-256 of a text, as 64 hexadecimal digits (D03)."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_storable(text: str) -> bool:
    """Whether a text can be kept as UTF-8 in PostgreSQL: no NUL byte, no lone surrogate."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def count_tokens(text: str) -> int:
    """About how many tokens a language model reads in this text, without any model's vocabulary.

    Common words are one token, long ones break every six letters or so; punctuation and CJK characters are one each.
    """
    return sum(1 + (len(piece) - 1) // 6 for piece in _PIECES.findall(text))
