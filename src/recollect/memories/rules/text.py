"""What a text is before it is remembered: one normal form, one checksum, an estimate of its length in tokens."""

import hashlib
import re
import unicodedata
from collections.abc import Iterator

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# Up to six letters or digits of a word; a CJK character or a sign is one of its own.
_CJK = "぀-ヿ㐀-䶿一-鿿가-힯豈-﫿"
_PIECES = re.compile(rf"[^\W_{_CJK}]{{1,6}}|\S")


def normalise(text: str) -> str:
    """The form in which a text is kept: Unicode NFC, line ends as \\n, no blank space around it."""
    return unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n").strip()


def checksum(text: str) -> str:
    """SHA-256 of a text, as 64 hexadecimal digits (D03)."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_storable(text: str) -> bool:
    """Whether a text can be kept as UTF-8 in PostgreSQL: no NUL byte, no lone surrogate."""
    return _UNSTORABLE.search(text) is None


def count_tokens(text: str) -> int:
    """About how many tokens a language model reads in this text, without any model's vocabulary.

    Common words are one token, long ones break every six letters or so; punctuation and CJK characters are one each.
    """
    return len(_PIECES.findall(text))


def pieces_of(text: str) -> list[int]:
    """Where each token begins, as count_tokens counts them."""
    return [piece.start() for piece in each_piece(text)]


def each_piece(text: str) -> Iterator[re.Match[str]]:
    """The tokens one after the other, for whoever does not need to see them all."""
    return _PIECES.finditer(text)


def first_tokens(text: str, most: int) -> str:
    """The beginning of a text: at most so many tokens."""
    end = 0
    for number, piece in enumerate(_PIECES.finditer(text), start=1):
        if number > most:
            return text[:end]
        end = piece.end()
    return text
