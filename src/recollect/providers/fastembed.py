"""Models of the field, run here on the processor: any ONNX model that fastembed knows, or one in a folder of your own.

    fastembed:BAAI/bge-small-en-v1.5, from fastembed's own cache (FASTEMBED_CACHE_PATH)
    fastembed:our-model, RECOLLECT_EMBEDDING_FOLDER=/srv/models/our-model

Rerankers likewise: RECOLLECT_RERANKER=fastembed:Xenova/ms-marco-MiniLM-L-6-v2, and RECOLLECT_RERANKER_FOLDER.

Nothing is downloaded: what is not there is named, with what to do. A folder holds `model.onnx` (or `onnx/model.onnx`),
`tokenizer.json`, `tokenizer_config.json` and `config.json`, as Hugging Face keeps them. Of a model that fastembed does
not know, the vector of a text is the mean of its tokens, unless `1_Pooling/config.json` says that it is the first one.
"""

import json
import threading
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread
import numpy as np

from recollect.errors import InvalidInput, NotInstalled
from recollect.ports import Vectors
from recollect.providers.minilm import MOST_UNREAD, unread_share
from recollect.providers.pieces import embed_pieces, loading
from recollect.providers.rerankers import checked_scores

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from fastembed.rerank.cross_encoder import TextCrossEncoder

M = TypeVar("M")

# A model reads 512 tokens at most, as a rule: longer texts are embedded in pieces, and the sum counts.
PIECE_BYTES = 1600
BATCH = 32
FILES = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
UNKNOWN = ("[UNK]", "<unk>")

_registering = threading.Lock()


class FastembedEmbedder:
    def __init__(self, *, name: str, folder: Path | None = None, threads: int = 0) -> None:
        require_fastembed("embedder")
        self._name, self._folder, self._threads = name, folder, threads or None
        self._dim = dimension_of(name, folder)
        self._loading = threading.Lock()
        self._loaded: TextEmbedding | None = None

    @property
    def model(self) -> str:
        return f"fastembed:{self._name}:{self._dim}"

    @property
    def dim(self) -> int:
        return self._dim

    def can_read(self, text: str) -> bool:
        """Whether most of it has tokens of its own; a model whose tokens are bytes reads any text."""
        tokenizer: Any = getattr(self._model().model, "tokenizer", None)
        unknown = next((name for name in UNKNOWN if tokenizer and tokenizer.token_to_id(name) is not None), None)
        return unknown is None or unread_share(text, tokenizer, unknown) <= MOST_UNREAD

    def knows(self, text: str) -> float:
        """All of it: how a model for many languages cuts a word says nothing of how well it knows it."""
        return 1.0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await anyio.to_thread.run_sync(self._embed, list(texts))

    async def close(self) -> None:
        self._loaded = None

    def _embed(self, texts: Sequence[str]) -> Vectors:
        def encode(pieces: list[str]) -> Vectors:
            return np.array(list(self._model().embed(pieces, batch_size=BATCH)), dtype=np.float32)

        return embed_pieces(texts, encode, name=self._name, dim=self._dim, max_bytes=PIECE_BYTES)

    def _model(self) -> "TextEmbedding":
        with self._loading:
            if self._loaded is None:
                self._loaded = loaded(self._name, self._folder, self._threads)
            return self._loaded


class FastembedReranker:
    """A cross-encoder: it reads the question and a text as one."""

    def __init__(self, *, name: str, folder: Path | None = None, threads: int = 0) -> None:
        require_fastembed("reranker")
        self._name, self._folder, self._threads = name, folder, threads or None
        self._loading = threading.Lock()
        self._loaded: TextCrossEncoder | None = None

    @property
    def name(self) -> str:
        return f"fastembed:{self._name}"

    async def scores(self, question: str, texts: Sequence[str]) -> Vectors:
        return await anyio.to_thread.run_sync(self._scores, question, list(texts))

    async def close(self) -> None:
        self._loaded = None

    def _scores(self, question: str, texts: Sequence[str]) -> Vectors:
        read = list(self._model().rerank(question, texts, batch_size=BATCH))
        scores = checked_scores(read, texts=len(texts), name=self._name)
        return np.asarray(1 / (1 + np.exp(-scores)), dtype=np.float32)

    def _model(self) -> "TextCrossEncoder":
        with self._loading:
            if self._loaded is None:
                self._loaded = loaded_reranker(self._name, self._folder, self._threads)
            return self._loaded


def require_fastembed(part: str) -> None:
    if find_spec("fastembed") is None:
        raise NotInstalled(f'The {part} `fastembed` needs fastembed: pip install "recollect[fastembed]".')


def dimension_of(name: str, folder: Path | None) -> int:
    """As fastembed knows it, else as the model's own configuration says."""
    if name.lower() in (dims := dimensions()):
        return dims[name.lower()]
    if folder is None:
        raise InvalidInput(
            f"fastembed knows no model {name!r}: name one of its own, or the folder of the model's files in "
            "RECOLLECT_EMBEDDING_FOLDER.",
            field="embedder",
        )
    size = configuration(folder, "config.json").get("hidden_size")
    if not isinstance(size, int) or size < 1:
        raise InvalidInput(
            f"{folder / 'config.json'} does not say how long vectors are (hidden_size).", field="embedder"
        )
    return size


def dimensions() -> dict[str, int]:
    from fastembed import TextEmbedding

    return {model["model"].lower(): int(model["dim"]) for model in TextEmbedding.list_supported_models()}


def configuration(folder: Path, name: str) -> dict[str, Any]:
    try:
        values = json.loads((folder / name).read_text(encoding="utf8"))
    except FileNotFoundError:
        problem = f"There is no {name} in {folder}: RECOLLECT_EMBEDDING_FOLDER is to hold the files of a model."
        raise InvalidInput(problem, field="embedding_folder") from None
    except ValueError:
        raise InvalidInput(f"{folder / name} is not JSON.", field="embedding_folder") from None
    return values if isinstance(values, dict) else {}


def loaded(name: str, folder: Path | None, threads: int | None) -> "TextEmbedding":
    """The model from its folder, or from fastembed's cache; never from the network."""
    from fastembed import TextEmbedding

    if folder is not None:
        register(name, folder)
    return opened(TextEmbedding, name, folder, threads, "EMBEDDING")


def loaded_reranker(name: str, folder: Path | None, threads: int | None) -> "TextCrossEncoder":
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    if folder is not None:
        register_reranker(name, folder)
    return opened(TextCrossEncoder, name, folder, threads, "RERANKER")


def opened(make: Callable[..., M], name: str, folder: Path | None, threads: int | None, setting: str) -> M:
    where: dict[str, Any] = {"specific_model_path": str(folder)} if folder else {"local_files_only": True}
    with loading(name, folder, cache="fastembed", setting=setting):
        return make(model_name=name, threads=threads, cuda=False, **where)


def register(name: str, folder: Path) -> None:
    """Tell fastembed of a model that it does not know, once."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    with _registering:
        if name.lower() in dimensions():
            return
        file = model_file(folder, "embedding_folder")
        TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType.CLS if pools_first(folder) else PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=name),
            dim=dimension_of(name, folder),
            model_file=file,
        )


def register_reranker(name: str, folder: Path) -> None:
    from fastembed.common.model_description import ModelSource
    from fastembed.rerank.cross_encoder import TextCrossEncoder

    with _registering:
        if name.lower() not in {model["model"].lower() for model in TextCrossEncoder.list_supported_models()}:
            file = model_file(folder, "reranker_folder")
            TextCrossEncoder.add_custom_model(model=name, sources=ModelSource(hf=name), model_file=file)


def model_file(folder: Path, setting: str) -> str:
    file = next((file for file in FILES if (folder / file).is_file()), None)
    if file is None:
        problem = f"There is no ONNX model in {folder}: it is looked for as {', '.join(FILES)}."
        raise InvalidInput(problem, field=setting)
    return file


def pools_first(folder: Path) -> bool:
    """Whether a text's vector is that of its first token, as sentence-transformers writes it down."""
    name = "1_Pooling/config.json"
    return (folder / name).is_file() and bool(configuration(folder, name).get("pooling_mode_cls_token"))
