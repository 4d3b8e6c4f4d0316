"""What a model's answer stands on: its citations, its own confidence, what it marks as outside knowledge (D42).

Citations are looked for sentence by sentence, and a sentence without one is named (D51).

A citation is [Memory 2], [Memory 1, 3], [Memories 1-3], [Memory 1; Memory 4], or just [2]. Dates in brackets, links and
indices in code are none.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from recollect.model import Mode
from recollect.recall.rules.sentences import statements

NOT_ANSWERED = "The memories do not answer that."
RERANK_TO = 5
DEFAULT_CONFIDENCE = 0.5
MOST_IN_A_RANGE = 50
MOST_NAMED = 5
LONGEST_NAMED = 80

_NUMBER = r"(?:memor(?:y|ies)\s*)?#?\d{1,3}"
_NUMBERS = rf"{_NUMBER}(?:\s*(?:,\s*and\b|,|;|&|and\b|-|–)\s*{_NUMBER})*"
# A bare [2] is none behind a word (an index) or before a parenthesis (a link); [Memory 2] is one anywhere.
CITATION = re.compile(rf"(?<!\w)\[\s*{_NUMBERS}\s*\](?!\()|\[\s*memor(?:y|ies)\s*{_NUMBERS}\s*\]", re.IGNORECASE)
_PLACES = re.compile(r"(\d+)\s*[-–]\s*(?:memor(?:y|ies)\s*)?#?(\d+)|(\d+)", re.IGNORECASE)
_CONFIDENCE = re.compile(r"^[\s*_`]*confidence[\s*_`]*:[\s*_`]*(\d+(?:\.\d+)?|\.\d+)\s*(%)?[\s*_`.]*$", re.I | re.M)
_EXTERNAL = re.compile(r"\[\s*external\s*\]", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """An answer taken apart. `cited` are the numbers of memories that were given, in order of appearance."""

    text: str
    cited: tuple[int, ...]
    problems: tuple[str, ...]
    external_knowledge_used: bool
    confidence: float


def read(answer: str, *, mode: Mode, given: int) -> Reading:
    """Check an answer that was made from memories 1 to `given`."""
    text, confidence = _without_confidence(answer.strip())
    numbers = cited_in(text)
    strangers = [number for number in numbers if not 1 <= number <= given]
    external = _EXTERNAL.search(text) is not None
    problems = [
        *_about_citations(text, numbers, external=external, mode=mode),
        *_about_strangers(strangers, given),
    ]
    if external and mode is not Mode.EXPAND:
        problems.append(f"The answer uses knowledge from outside, which {mode} does not allow: do not rely on it.")
    return Reading(
        text=text,
        cited=tuple(number for number in numbers if number not in strangers),
        problems=tuple(problems),
        external_knowledge_used=external,
        confidence=confidence,
    )


def cited_in(text: str) -> list[int]:
    """The numbers that a text cites, each once, in order of appearance."""
    numbers: list[int] = []
    for citation in CITATION.finditer(text):
        for first, last, single in _PLACES.findall(citation.group()):
            if single:
                numbers.append(int(single))
            elif int(first) <= int(last) < int(first) + MOST_IN_A_RANGE:
                numbers.extend(range(int(first), int(last) + 1))
            else:
                numbers += [int(first), int(last)]
    return list(dict.fromkeys(numbers))


def chosen_in(answer: str, *, given: int) -> list[int] | None:
    """The memories that a model chose, best first; None unless it is a list of different numbers from 1 to `given`."""
    text = re.sub(r"\A```\w*\s*|\s*```\Z", "", answer.strip())
    try:
        chosen = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(chosen, list) or not chosen or not all(type(number) is int for number in chosen):
        return None
    if len(set(chosen)) < len(chosen) or not all(1 <= number <= given for number in chosen):
        return None
    return chosen[:RERANK_TO]


def _about_citations(text: str, numbers: Sequence[int], *, external: bool, mode: Mode) -> list[str]:
    if not numbers and NOT_ANSWERED.rstrip(".").lower() in text.lower():
        return []
    if numbers:
        return _about_sentences(
            [sentence for sentence in statements(text, CITATION) if not _stands_on_something(sentence)]
        )
    if external and mode is Mode.EXPAND:
        return ["The answer cites no memory: all of it is knowledge from outside."]
    return ["The answer cites no memory: check it against the memories themselves."]


def _stands_on_something(sentence: str) -> bool:
    """On a memory, or openly on none: marked as knowledge from outside, or saying that the memories are silent."""
    says_nothing = NOT_ANSWERED.rstrip(".").lower() in sentence.lower()
    return says_nothing or bool(CITATION.search(sentence) or _EXTERNAL.search(sentence))


def _about_sentences(bare: Sequence[str]) -> list[str]:
    if not bare:
        return []
    named = ", ".join(f'"{_beginning(sentence)}"' for sentence in bare[:MOST_NAMED])
    more = f", and {len(bare) - MOST_NAMED} more" if len(bare) > MOST_NAMED else ""
    cite = "1 sentence cites" if len(bare) == 1 else f"{len(bare)} sentences cite"
    return [f"{cite} no memory: {named}{more}."]


def _beginning(sentence: str) -> str:
    return sentence if len(sentence) <= LONGEST_NAMED else f"{sentence[: LONGEST_NAMED - 1].rstrip()}…"


def _about_strangers(strangers: Sequence[int], given: int) -> list[str]:
    if not strangers:
        return []
    named = ", ".join(f"[Memory {number}]" for number in strangers)
    were = "1 memory was" if given == 1 else f"{given} memories were"
    return [f"The answer cites {named}, but {were} given: what it says there has no memory behind it."]


def _without_confidence(text: str) -> tuple[str, float]:
    """The answer without its line about confidence, and the number in it, if it is from 0 to 1."""
    matches = list(_CONFIDENCE.finditer(text))
    if not matches:
        return text, DEFAULT_CONFIDENCE
    last = matches[-1]
    value = float(last.group(1)) / (100 if last.group(2) else 1)
    rest = (text[: last.start()] + text[last.end() :]).strip()
    return rest, value if 0 <= value <= 1 else DEFAULT_CONFIDENCE
