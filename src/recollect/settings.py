"""All settings, each with its default and one line of why. Read once, when an engine is built; never at import.

Every setting is an environment variable with the prefix RECOLLECT_; `recollect config` prints them with their origin.
"""

import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from recollect.errors import InvalidInput
from recollect.wording import cannot_be

PREFIX = "RECOLLECT_"
# These are also read without the prefix, as other programs name them.
ALSO_WITHOUT = ("database_url", "database_read_url", "embedding_dimension")


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, protected_namespaces=())

    home: Path | None = Field(
        None, description="Directory of the database inside; empty = the platform's user data directory."
    )
    database_url: SecretStr | None = Field(
        None,
        description="A PostgreSQL >= 16 with pgvector >= 0.8 to use instead of the one inside.",
    )
    database_read_url: SecretStr | None = Field(
        None,
        description="A standby of that PostgreSQL, where recalls, lists and exports may read.",
    )
    read_wait_seconds: float = Field(
        0.2, ge=0, description="How long a read waits at the standby for what its caller wrote; then: the primary."
    )
    read_lag_seconds: float = Field(10.0, gt=0, description="A standby further behind than this is not read.")
    space: str = Field("default", description="The space (tenant) that is used when none is named.")
    pg_version: Literal[16, 18] = Field(18, description="Version of the PostgreSQL inside, for a new data directory.")
    pg_start_seconds: int = Field(120, ge=1, description="How long the database inside may take to start (recovery).")
    pool_size: int = Field(
        8, ge=2, le=200, description="Database connections one process holds at most; half as many more only search."
    )
    statement_timeout_seconds: float = Field(30.0, gt=0, description="A search that takes longer is given up.")

    embedder: str = Field(
        "minilm",
        description="provider[:model[:dimension]]: minilm, static, hashing, or fastembed, sentence-transformers, "
        "openai, ollama with :MODEL.",
    )
    embedding_dimension: int | None = Field(
        None,
        ge=8,
        le=4000,
        description="Vector length, for embedders that allow a choice.",
    )
    embedding_folder: Path | None = Field(
        None, description="A folder with the files of a model, for fastembed and sentence-transformers."
    )
    embedding_url: str | None = Field(None, description="Base address of an OpenAI-compatible or Ollama server.")
    embedding_api_key: SecretStr | None = Field(None, description="Key for that server, where it needs one.")
    embedding_timeout_seconds: float = Field(30.0, gt=0, description="How long one request to an embedder may take.")
    embedding_threads: int = Field(0, ge=0, description="Threads of the local model; 0 = all cores.")
    embedding_batch: int = Field(256, ge=1, le=4096, description="Texts a worker claims at once.")
    ray: str = Field(
        "",
        pattern=r"^(auto|ray://[^\s/]+:\d{1,5})?$",
        description="A Ray cluster for large batches: auto (one that runs on this machine) or ray://HOST:10001; "
        "empty = everything is done here.",
    )
    job_max_attempts: int = Field(3, ge=1, le=100, description="How often an embedding is tried before it fails.")
    job_stuck_seconds: float = Field(300.0, gt=0, description="A claimed job older than this goes to another worker.")
    worker_poll_seconds: float = Field(1.0, gt=0, description="How often an idle worker looks for jobs.")

    reranker: str = Field(
        "",
        description="provider:model that reads the first hits again and orders them: fastembed:MODEL, "
        "sentence-transformers:MODEL; empty = none.",
    )
    reranker_folder: Path | None = Field(None, description="A folder with the files of that model.")

    model: str = Field(
        "", description="provider:model that answers `ask`: openai:MODEL, anthropic:MODEL, ollama:MODEL; empty = none."
    )
    model_url: str | None = Field(
        None, description="Base address of the model's server, where it is not the usual one."
    )
    model_api_key: SecretStr | None = Field(None, description="Key for that server, where it needs one.")
    model_timeout_seconds: float = Field(60.0, gt=0, description="How long one answer of a language model may take.")
    model_max_tokens: int = Field(1000, ge=16, le=100_000, description="Longest answer of a language model, in tokens.")
    debug_prompts: bool = Field(False, description="Keep every prompt in the query log, with the memories in it.")
    cache_size: int = Field(256, ge=0, description="Recalls that are kept for repeated questions; 0 = none.")
    cache_seconds: float = Field(60.0, gt=0, description="How long a kept recall may be used; ages count in ranking.")
    search_in_memory_mb: int = Field(
        256, ge=0, description="Kept in memory by each process, of spaces that are asked again and again; 0 = nothing."
    )

    max_text_bytes: int = Field(1_000_000, ge=1, description="Longest text of one memory, in UTF-8 bytes.")
    max_batch_items: int = Field(10_000, ge=1, description="Most items of one batch over HTTP.")
    max_large_requests: int = Field(
        8, ge=1, description="Batches, imports and plans of one caller at a time, over HTTP."
    )
    max_connections: int = Field(1000, ge=1, description="Connections that the server answers at a time.")
    header_seconds: float = Field(15.0, gt=0, description="How long a caller may take to send the head of a request.")
    max_metadata_bytes: int = Field(4096, ge=2, description="Largest metadata of one memory, as UTF-8 JSON.")
    chunk_tokens: int = Field(2000, ge=50, le=3000, description="The importer cuts documents longer than this.")
    summaries: bool = Field(False, description="Whether summaries may be kept (each waits for approval).")
    hnsw_m: int = Field(16, ge=2, le=100, description="Links per vector in the HNSW index.")
    hnsw_ef_construction: int = Field(200, ge=4, le=1000, description="Care taken when the HNSW index is built.")
    hnsw_ef_search: int = Field(
        800, ge=1, le=1000, description="Most care taken when the HNSW index is searched; a smaller index needs less."
    )
    hnsw_min_rows: int = Field(10_000, ge=0, description="Below this, exact search is faster: no HNSW index is built.")

    production: bool = Field(
        False, description="Whether merges and archivings wait for approval; without it only the brake stops them."
    )
    graph_enabled: bool = Field(True, description="Whether scheduled tidying of the graph runs at all.")
    gate_min_edges: int = Field(50, ge=0, description="A graph with fewer edges is not tidied by schedule.")
    gate_min_days: float = Field(14.0, ge=0, description="A graph younger than this is not tidied by schedule.")
    brake_share: float = Field(0.15, gt=0, le=1, description="A plan that touches a larger share of the graph waits.")
    brake_at_least: int = Field(50, ge=0, description="The brake looks at graphs with at least so many nodes or edges.")
    declined_days: float = Field(30.0, ge=0, description="How long a declined merge is not offered again.")

    duplicates_detect_every: int = Field(
        1000, ge=0, description="Changes of a space after which its concepts are looked through; 0 = only when asked."
    )
    duplicates_merge_every: int = Field(
        10_000, ge=0, description="Changes of a space after which duplicates are merged before their time; 0 = never."
    )

    time_zone: str = Field("UTC", description="Zone of schedules that name a time of day, when they are first made.")
    notify: SecretStr | None = Field(
        None,
        description="Who is told, besides the log, of plans that wait, failures and reports: webhook:https://... or "
        "Apprise addresses (mailto://...), comma-separated.",
    )

    host: str = Field("127.0.0.1", description="Address the server listens on; anything but loopback needs a key.")
    port: int = Field(7700, ge=0, le=65535, description="Port the server listens on; 0 = any free one.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="How much is logged.")
    log_format: Literal["console", "json"] = Field("console", description="Logs for people or for machines.")
    backup_keep: int = Field(7, ge=1, description="How many daily backups `recollect maintain` keeps.")
    job_keep_days: int = Field(30, ge=0, description="Completed jobs older than this are cleared by `maintain`.")

    @field_validator("home", mode="before")
    @classmethod
    def _none_if_empty(cls, home: Any) -> Any:
        """An empty path would be the current directory, wherever that is."""
        return home or None

    @classmethod
    def load(cls, **given: Any) -> "Settings":
        """Settings from the environment, with what is given taking precedence; one clear sentence if one is wrong."""
        try:
            return cls(**cls._from_environment() | {name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            is_given = given.get(name) is not None
            subject = name if is_given else f"The setting {PREFIX}{name.upper()}"
            said = cannot_be(subject, first, secret="key" in name or "url" in name)
            raise InvalidInput(
                f"{said}.{'' if is_given else ' Unset it, or give another value.'}", field=name
            ) from error

    @classmethod
    def environment_names(cls, name: str) -> list[str]:
        """The variables that may hold this setting, the first of them preferred."""
        return [PREFIX + name.upper(), *([name.upper()] if name in ALSO_WITHOUT else [])]

    @classmethod
    def _from_environment(cls) -> dict[str, str]:
        """What is set there; an empty variable is none."""
        held = {name: map(os.environ.get, cls.environment_names(name)) for name in cls.model_fields}
        return {name: value for name, values in held.items() if (value := next(filter(None, values), None))}

    def origin(self, name: str) -> str:
        """Where a value came from: a variable's name, the caller, or the default."""
        for variable in self.environment_names(name):
            if os.environ.get(variable):
                return variable
        return "given" if name in self.model_fields_set else "default"

    def describe(self) -> list[dict[str, str]]:
        """Every setting: name, value (secrets hidden), origin, why."""
        return [
            {
                "name": self.environment_names(name)[0],
                "value": "" if getattr(self, name) is None else str(getattr(self, name)),
                "origin": self.origin(name),
                "why": field.description or "",
            }
            for name, field in type(self).model_fields.items()
        ]
