"""What a sentence says besides its topic, which a vector hardly sees: numbers, denial, direction.

"Error E1041" and "E1042", "available" and "not available", "CSV to JSON" and "JSON to CSV" have a cosine near 1 and are
not the same. Two sentences may be taken for one only where these agree; else it is a question (cases/rules/doubts).

The lists of words are small and know it: English, German, French, Spanish and Vietnamese, and what Thai, Chinese,
Japanese, Korean and Russian most often deny with. A denial in other words, or in another language, is not seen here;
that the answers must agree as well is what stands behind.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

# A sign counts where it cannot be a hyphen: -40, (-40), but not E-1041 or 2020-2021.
_NUMBER = re.compile(r"(?:(?<![^\s(\[=:<>≤≥±])[-−+])?\d+(?:[.,:]\d+)*")
# What stands at a number and says of what it is: 100 EUR, 5 kg, $100, 40 %, 40°C.
_UNIT = re.compile(r"\s?(°\s?[A-Za-z]\b|[%‰°€$£¥₫฿₹₽]|[A-Z]{3}\b|[^\W\d_]+)")
_CURRENCY = re.compile(r"([€$£¥₫฿₹₽]|\b[A-Z]{3})\s?$")
_WORDS = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

# English (and whatever ends in n't), German, French, Spanish, Vietnamese, Russian.
_DENYING = """
no not never none nothing nobody neither nor without cannot cant dont doesnt didnt isnt arent wasnt wont unable except
nicht nichts nie niemals kein keine keinen keinem keiner keines ohne weder
pas jamais sans aucun aucune nunca sin ningún ninguna không chưa chẳng đừng не нет нельзя без никогда
"""
# Written without gaps between words: found anywhere. (Of these, Thai and Japanese endings are the commonest only.)
_DENIALS_INSIDE = ("ไม่", "ห้าม", "อย่า", "不", "没", "無", "未", "别", "ない", "ません", "않", "못", "없")
# One of a pair in one sentence and the other in the other: they ask for the contrary.
_OPPOSITES = """
left right, before after, enable disable, enabled disabled, enabling disabling, on off, in out, up down, open close,
opened closed, start stop, begin end, first last, min max, minimum maximum, increase decrease, raise lower, more less,
more fewer, above below, over under, add remove, create delete, lock unlock, login logout, import export,
upload download, encrypt decrypt, send receive, buy sell, push pull, old new, older newer, allow deny, allow forbid,
allow block, accept reject, success failure, pass fail, true false, yes no, internal external, public private, with
without, links rechts, vor nach, an aus, mehr weniger, öffnen schließen, aktivieren deaktivieren, trái phải, trước sau,
bật tắt, tăng giảm, mở đóng, mua bán
"""
_OPPOSITE_PAIRS = tuple(tuple(pair.split()) for pair in _OPPOSITES.split(","))
_DENYING_PREFIXES = ("un", "dis", "non", "in", "im", "de")
_MEASURES = """
t kg g mg lb oz km m cm mm mi ft l ml h hr hrs min mins s sec ms eur euro euros usd dollar dollars vnd gbp chf jpy
hour hours minute minutes second seconds day days week weeks month months year years percent degrees
tage tag wochen monate jahre stunden minuten kb mb gb tb bit bits c f k v w kw kwh hz mhz ghz px pt x
ngày tuần tháng năm giờ phút đồng triệu nghìn
"""
# Words that say nothing of the matter: how a question is put. Their order tells nothing.
_PUTTING = """
a an the of for to in on at by with from into is are was be do does did can could will would should may i me my you your
we our it its this that how what where when why which who please and or there have has get
der die das den dem ein eine ist sind wie was wo wann ich mein meine und oder kann zu
là có được cho của và tôi thế nào làm sao
"""
_DENIALS, _UNITS, _SMALL = (frozenset(listing.split()) for listing in (_DENYING, _MEASURES, _PUTTING))


def numbers(text: str) -> tuple[str, ...]:
    """The numbers of a text as they stand, each with its sign and its unit: `-40 c`, `100 eur`, `1041 `."""
    return tuple(_with_unit(text, number) for number in _NUMBER.finditer(text))


def _with_unit(text: str, number: re.Match[str]) -> str:
    before, after = _CURRENCY.search(text[max(0, number.start() - 5) : number.start()]), _UNIT.match(text, number.end())
    unit = before[1] if before else after[1] if after else ""
    is_unit = not unit.isalpha() or (len(unit) == 3 and unit.isupper()) or unit.casefold() in _UNITS
    return f"{number[0].replace('−', '-')} {unit.replace(' ', '').casefold().rstrip('s') if is_unit else ''}"


def denials(text: str) -> int:
    """How often a text denies. Not by which word: "can't" is "cannot"."""
    spoken = sum(word in _DENIALS or word.endswith(("n't", "n’t")) for word in words(text))
    return spoken + sum(text.count(mark) for mark in _DENIALS_INSIDE)


def words(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(unicodedata.normalize("NFC", text.casefold())))


def are_opposed(left: AbstractSet[str], right: AbstractSet[str]) -> bool:
    """Whether words that only one of two texts has are opposites: left and right, available and unavailable."""
    ours, theirs = left - right, right - left
    return _oppose(ours, theirs) or _oppose(theirs, ours)


def _oppose(ours: AbstractSet[str], others: AbstractSet[str]) -> bool:
    denied = (prefix + word for word in ours for prefix in _DENYING_PREFIXES)
    return not others.isdisjoint(denied) or any(word in ours and other in others for word, other in _OPPOSITE_PAIRS)


def are_turned(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether words that both texts have stand in another order: CSV to JSON, JSON to CSV. Small words do not count."""
    both = _once(left) & _once(right)
    return [word for word in left if word in both] != [word for word in right if word in both]


def _once(words: Sequence[str]) -> set[str]:
    return {word for word, times in Counter(words).items() if times == 1 and word not in _SMALL}
