"""The text of a page line by line: what is code, what is a heading, what is a sentence.

Code is opaque: a `# comment` in it is no heading and `[[x]]` in it is no link. The fences of both formats count in both,
because real pages mix them.
"""

import re
from collections.abc import Iterable, Iterator

_FENCE = re.compile(r"[ \t>*-]*(`{3,}|~{3,})([^`\n]*)$")
_TAG = re.compile(r"[ \t]*<(syntaxhighlight|source|pre|math|nowiki|mermaid)\b[^>\n]*(?<!/)>", re.IGNORECASE)
_COMMENT = re.compile(r"[ \t]*<!--")
_INLINE_CODE = re.compile(r"(`+)(?!`)(?:.*?[^`])??\1(?!`)|<code>.*?</code>|<nowiki>.*?</nowiki>|<!--.*?-->")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+(?=[^\s])")
_LIST_MARK = re.compile(r"^\s*(?:[*#:;>-]+|\d+[.)]|\|+|!+)\s*")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|dr|mr|mrs)\.|\b[A-Z]\.)$", re.IGNORECASE)


def lines_with_code(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to a block of code (its fences included)."""
    lines = text.split("\n")
    last_end = _last_ends(lines)
    ends: str | None = None
    for number, line in enumerate(lines):
        if ends is None:
            ends = _opened(line, number, last_end)
            yield line, ends is not None
        else:
            yield line, True
            if _closes(line, ends):
                ends = None


def is_open(text: str) -> str | None:
    """The fence that is still open at the end of a text, as it must be closed; None where there is none."""
    ends: str | None = None
    last_end = _last_ends(text.split("\n"))
    for number, line in enumerate(text.split("\n")):
        if ends is None:
            ends = _opened(line, number, last_end)
        elif _closes(line, ends):
            ends = None
    return ends


def closed(text: str) -> str:
    """A text after which another may follow: an open fence is closed."""
    fence = is_open(text)
    return text if fence is None else f"{text}\n{fence}"


def outside_code(text: str) -> Iterator[str]:
    return (line for line, is_code in lines_with_code(text) if not is_code)


def without_code(line: str) -> str:
    """The line with its inline code blanked, so that places stay where they are."""
    return _INLINE_CODE.sub(lambda found: " " * len(found[0]), line) if "`" in line or "<" in line else line


def _opened(line: str, number: int, last_end: dict[str, int]) -> str | None:
    """What will end the block that this line opens; None where it opens none, or one that is never closed."""
    if fence := _FENCE.match(line):
        return fence[1]
    for end, opening in (("-->", _COMMENT), (None, _TAG)):
        if found := opening.match(line):
            closing = end or f"</{found[1].lower()}>"
            is_done = closing in line[found.end() :].lower()
            return closing if not is_done and last_end.get(closing, -1) > number else None
    return None


def _closes(line: str, ends: str) -> bool:
    if ends[0] in "`~":
        mark = line.strip().lstrip(">").strip()
        return len(mark) >= len(ends) and not mark.strip(ends[0])
    return ends in line.lower()


def _last_ends(lines: list[str]) -> dict[str, int]:
    """Where each closing tag occurs last: a tag that nothing closes opens no block."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines):
        if "</" in line or "-->" in line:
            for end in re.findall(r"</(?:syntaxhighlight|source|pre|math|nowiki|mermaid)>|-->", line.lower()):
                found[end] = number
    return found


# -- sentences


def sentences(text: str) -> list[str]:
    """The sentences of a text: prose cut at its full stops, every list item, table row and line of code by itself."""
    found: list[str] = []
    paragraph: list[str] = []
    for line, is_code in lines_with_code(text):
        if is_code or not line.strip() or _LIST_MARK.match(line):
            found += _cut(" ".join(paragraph))
            paragraph = []
        if is_code:
            found += [line.strip()] if _says_something(line) else []
        elif mark := _LIST_MARK.match(line):
            paragraph = [line[mark.end() :].strip()]
        elif line.strip():
            paragraph.append(line.strip())
    return found + _cut(" ".join(paragraph))


def said(sentence: str) -> str:
    """A sentence as it is compared: words alone, without case, markup and punctuation."""
    return " ".join(re.findall(r"\w+", sentence.casefold()))


def said_in(texts: Iterable[str]) -> set[str]:
    return {said(sentence) for text in texts for sentence in sentences(text)} - {""}


def _cut(prose: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(prose):
        if not _ABBREVIATION.search(prose[start : end.start()]):
            parts.append(prose[start : end.start()])
            start = end.end()
    parts.append(prose[start:])
    return [part.strip() for part in parts if _says_something(part)]


def _says_something(part: str) -> bool:
    return bool(re.search(r"\w", part))
