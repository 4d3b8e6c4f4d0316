"""A JSON file read value by value: the items of a list one after the other, however long it is, or the one value there
is. An export of years of conversations is a single list, and need not fit into memory."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from recollect.errors import InvalidInput

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


def json_values(blocks: Iterable[str]) -> Iterator[Any]:
    """The values in a text that comes in blocks; InvalidInput where it is not JSON, after what stands before that."""
    rest = _Rest(blocks)
    if rest.skip(_BLANK) != "[":
        yield rest.whole()
        return
    rest.drop(1)
    number = 1
    while (mark := rest.skip(_BLANK + ",")) != "]":
        if not mark:
            raise InvalidInput(f"The list of JSON ends before its end, at item {number:,}: the file was cut short.")
        yield rest.next(number)
        number += 1


class _Rest:
    """What of a text was not read yet."""

    def __init__(self, blocks: Iterable[str]) -> None:
        self._blocks, self._text, self._is_all = iter(blocks), "", False

    def skip(self, signs: str) -> str:
        """The first character that is none of these; nothing at the end."""
        self._text = self._text.lstrip(signs)
        while not self._text and self._more(1):
            self._text = self._text.lstrip(signs)
        return self._text[:1]

    def drop(self, count: int) -> None:
        self._text = self._text[count:]

    def next(self, number: int) -> Any:
        """The next value. What was too short is read again twice as long, so that a long one costs twice."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text)
                if end < len(self._text) or self._is_all:
                    self.drop(end)
                    return value
            except RecursionError as error:
                raise InvalidInput(f"Item {number:,} is nested too deep.") from error
            except ValueError as error:
                if self._is_all:
                    raise InvalidInput(
                        f"Item {number:,} of the list is not JSON, or cut short: what stands before it was read."
                    ) from error
            self._more(len(self._text) + 1)

    def whole(self) -> Any:
        while self._more(len(self._text) + 1):
            pass
        try:
            return json.loads(self._text)
        except RecursionError as error:
            raise InvalidInput("It is nested too deep.") from error
        except ValueError as error:
            raise InvalidInput("It is not JSON: if it holds an object a line, save it as .jsonl.") from error

    def _more(self, least: int) -> bool:
        """Take so many more characters; False where there were none left."""
        taken: list[str] = []
        while least > 0 and (block := next(self._blocks, None)) is not None:
            taken.append(block)
            least -= len(block)
        self._is_all = least > 0
        self._text += "".join(taken)
        return bool(taken)
