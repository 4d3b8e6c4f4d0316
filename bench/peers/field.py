"""Who is measured: package and version, driver, and what its documentation says of a preview and an undo."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Peer:
    name: str
    driver: str
    how: str  # the documented interface it is driven by
    package: str = ""  # whose version is shown
    packages: tuple[str, ...] = ()  # what is installed; nothing for what runs in the project's own environment
    variant: str = ""
    keeps_apart: str = ""  # what separates one user's memories from another's
    preview: str = "no"
    undo: str = "no"
    reason: str = ""  # why it cannot be driven here, where it cannot
    is_slow: bool = False  # to start or to write, so that a quick run leaves it out unless it is named


# For those that load an extension into SQLite: not every Python is built to.
EXTENSIONS = "pysqlite3-binary==0.5.4.post2"

FIELD = (
    Peer(
        name="Recollect",
        driver="ours",
        how="`Recollect.add`, `add_many`, `recall`; PostgreSQL inside",
        package="recollect",
        keeps_apart="a space for each",
        preview="every tidying is a plan first",
        undo="every change",
    ),
    Peer(
        name="Recollect, texts alone", driver="ours", how="without thread and time", package="recollect", variant="bare"
    ),
    Peer(
        name="SQLite by hand",
        driver="plain_sqlite",
        how="FTS5 and vectors as blobs, fused by rank",
        keeps_apart="a column in every query",
    ),
    Peer(
        name="Chroma",
        driver="chroma",
        how="`PersistentClient`, `Collection.add`, `query`",
        package="chromadb",
        packages=("chromadb==1.5.9",),
        keeps_apart="a filter or a collection, where one is asked for",
    ),
    Peer(
        name="LanceDB",
        driver="lance",
        how="`Table.add`, `optimize`, hybrid `search` with its RRF reranker",
        package="lancedb",
        packages=("lancedb==0.40.0",),
        keeps_apart="a filter, where one is asked for",
        undo="the whole table, to an earlier version",
    ),
    Peer(
        name="LangGraph SQLite store",
        driver="langgraph_sqlite",
        how="`SqliteStore.put`, `batch`, `search`",
        package="langgraph-checkpoint-sqlite",
        packages=("langgraph-checkpoint-sqlite==3.1.2", EXTENSIONS),
        keeps_apart="a namespace, which every call names",
    ),
    Peer(
        name="LlamaIndex",
        is_slow=True,
        driver="llama_index_simple",
        how="`VectorStoreIndex.insert_nodes`, `persist`, `as_retriever`",
        package="llama-index-core",
        packages=("llama-index-core==0.14.25",),
        keeps_apart="a filter, where one is asked for",
    ),
    Peer(
        name="txtai",
        is_slow=True,
        driver="txtai_hybrid",
        how="`Embeddings.upsert`, `save`, hybrid `search`",
        package="txtai",
        packages=("txtai==9.14.0",),
        keeps_apart="a filter, where one is asked for",
    ),
    Peer(
        name="mcp-memory-service",
        is_slow=True,
        driver="mcp_memory",
        how="its SQLite-vec storage",
        package="mcp-memory-service",
        packages=("mcp-memory-service==12.2.0", EXTENSIONS),
        keeps_apart="a tag, where one is asked for",
    ),
    *(
        Peer(
            name=f"mem0, {store}",
            is_slow=True,
            driver="mem0_local",
            how="`Memory.add` with `infer=False`, `Memory.search`",
            package="mem0ai",
            packages=("mem0ai==2.2.1", *more),
            variant=store,
            keeps_apart="a user id, which every call names",
        )
        for store, more in (
            ("qdrant", ("fastembed==0.9.1",)),
            ("faiss", ("faiss-cpu==1.15.1",)),
            ("chroma", ("chromadb==1.5.9",)),
        )
    ),
)
