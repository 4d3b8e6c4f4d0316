"""A model small enough to be written by a test: ONNX as bytes, with a tokeniser beside it.

Every word of its vocabulary has a vector, which is a row of one table: the graph is a single `Gather`; that of a
reranker has a mean behind it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

INT64, FLOAT = 7, 1


def write_model(folder: Path, words: Sequence[str], vectors: Iterable[Sequence[float]], *, first: bool = False) -> None:
    """The files of a model that knows these words."""
    table = np.array([[0.0] * len(next(iter(vectors := [*vectors])))] * 2 + vectors, dtype=np.float32)
    _write_files(folder, words, table, _model(table))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    _write(
        folder / "1_Pooling" / "config.json", {"pooling_mode_cls_token": first, "pooling_mode_mean_tokens": not first}
    )


def write_reranker(folder: Path, worth: Mapping[str, float]) -> None:
    """The files of a reranker: a text is worth as much as its words are in the mean."""
    table = np.array([[0.0], [0.0], *([one] for one in worth.values())], dtype=np.float32)
    _write_files(folder, [*worth], table, _model(table, is_reranker=True))


def _write_files(
    folder: Path, words: Sequence[str], table: np.ndarray[tuple[int, int], np.dtype[np.float32]], model: bytes
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model)
    tokenizer = Tokenizer(WordLevel({word: id_ for id_, word in enumerate(["[PAD]", "[UNK]", *words])}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    _write(folder / "config.json", {"hidden_size": table.shape[1], "pad_token_id": 0})
    _write(folder / "tokenizer_config.json", {"model_max_length": 128, "pad_token": "[PAD]", "unk_token": "[UNK]"})
    _write(folder / "special_tokens_map.json", {"pad_token": "[PAD]", "unk_token": "[UNK]"})


def _write(file: Path, told: dict[str, object]) -> None:
    file.write_text(json.dumps(told))


# -- protocol buffers, as far as two nodes need them


def _number(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _field(place: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _number(place << 3) + _number(value)
    told = value.encode() if isinstance(value, str) else value
    return _number(place << 3 | 2) + _number(len(told)) + told


def _tensor(name: str, table: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> bytes:
    dims = b"".join(_field(1, size) for size in table.shape)
    return dims + _field(2, FLOAT) + _field(8, name) + _field(9, table.tobytes())


def _value(name: str, kind: int, *dims: str | int) -> bytes:
    shape = b"".join(_field(1, _field(1, one) if isinstance(one, int) else _field(2, one)) for one in dims)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _model(table: np.ndarray[tuple[int, int], np.dtype[np.float32]], *, is_reranker: bool = False) -> bytes:
    gather = _field(1, "table") + _field(1, "input_ids") + _field(2, "last_hidden_state") + _field(4, "Gather")
    inputs = [_field(11, _value(name, INT64, "batch", "length")) for name in ("input_ids", "attention_mask")]
    output = _field(12, _value("last_hidden_state", FLOAT, "batch", "length", table.shape[1]))
    nodes = _field(1, gather)
    if is_reranker:
        ints, whole = _field(20, 7), _field(20, 2)
        axes, keep = _field(1, "axes") + _field(8, 1) + ints, _field(1, "keepdims") + _field(3, 0) + whole
        mean = _field(1, "last_hidden_state") + _field(2, "logits") + _field(4, "ReduceMean")
        nodes += _field(1, mean + _field(5, axes) + _field(5, keep))
        output = _field(12, _value("logits", FLOAT, "batch", 1))
    graph = nodes + _field(2, "tiny") + _field(5, _tensor("table", table)) + b"".join(inputs) + output
    return _field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13))
