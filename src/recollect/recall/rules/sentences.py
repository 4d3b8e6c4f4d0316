"""The sentences of an answer, as far as its citations go: each with the citations that stand in it or right behind it.

    Linh drinks tea [Memory 1]. She gave up coffee. [Memory 2] Why is not known.

are three sentences. What states nothing is none: a heading, a line that only leads to what follows ("In short:"), a
question, code.
"""

import re
from collections.abc import Iterator

# Dots that end no sentence: behind these words, behind a single letter (J. Smith), and before a small letter.
_SHORT = frozenset(["dr", "mr", "mrs", "ms", "prof", "st", "sr", "jr", "nr", "vs", "etc", "approx", "ca", "inc", "ltd"])
_END = re.compile(r"[.!?…]+[\"'”’)\]*_]*(?=\s)|[。！？｡]+[」』”）]*|[।។؟]+(?=\s|$)")
_LAST_WORD = re.compile(r"(\w+)\.[\"'”’)\]*_]*$")
_MARKS = re.compile(r"^\s*(?:[-*+•>]\s+|\d{1,3}[.)]\s+|\|)+")
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$|__[^_]+__:?\s*$|[-=*_|:\s]{3,}$)")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_LETTERS = re.compile(r"[^\W\d_]{2}|[぀-ヿ㐀-䶿一-鿿가-힯]")


def statements(text: str, citation: re.Pattern[str]) -> Iterator[str]:
    """The sentences that state something, with the citations that belong to each."""
    for line in _lines(text):
        for sentence in _sentences(line, citation):
            if _states(citation.sub("", sentence)):
                yield sentence


def _lines(text: str) -> Iterator[str]:
    """The lines of prose: no code, no headings; without the marks of lists and quotations."""
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code and not _HEADING.match(line):
            yield _MARKS.sub("", line).strip()


def _sentences(line: str, citation: re.Pattern[str]) -> Iterator[str]:
    """A citation behind the full stop belongs to the sentence before it."""
    start = 0
    for end in _END.finditer(line):
        if end.end() <= start or not _is_end(line[start : end.end()], line[end.end() :].lstrip()):
            continue
        stop = end.end()
        while behind := citation.match(line, len(line) - len(line[stop:].lstrip())):
            stop = behind.end()
        yield line[start:stop].strip()
        start = stop
    yield line[start:].strip()


def _is_end(sentence: str, rest: str) -> bool:
    last = _LAST_WORD.search(sentence)
    if last and (last[1].casefold() in _SHORT or (len(last[1]) == 1 and last[1].isalpha() and last[1].isupper())):
        return False
    return not rest[:1].islower()


def _states(sentence: str) -> bool:
    bare = sentence.strip().rstrip("\"'”’)]*_」』）")
    return _LETTERS.search(bare) is not None and not bare.endswith((":", "?", "？", "؟", "："))
