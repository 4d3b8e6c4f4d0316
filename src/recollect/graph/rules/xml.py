"""Any text at all as XML: what XML 1.0 forbids is replaced by U+FFFD, what means something in it is escaped.

XML has no way to write NUL, most control characters and lone surrogates, not even as a reference: one of them in one
label would make a whole file unreadable.
"""

import re

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BETWEEN_TAGS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
# A reader turns line ends and tabs of an attribute into spaces, unless they are written as references.
_IN_ATTRIBUTE = _BETWEEN_TAGS | str.maketrans({'"': "&quot;", "'": "&#39;", "\n": "&#10;", "\t": "&#9;"})


def allowed(text: str) -> str:
    """The text with every character that XML 1.0 forbids replaced."""
    return _FORBIDDEN.sub("\ufffd", text)


def content(text: str) -> str:
    """A text to stand between two tags."""
    return allowed(text).translate(_BETWEEN_TAGS)


def attribute(text: str) -> str:
    """A text to stand between the quotes of an attribute."""
    return allowed(text).translate(_IN_ATTRIBUTE)
