"""Whether the built web page is the page of these sources, and its client that of this API; told without Node.

python -m tests.page --check | --openapi FILE | --stamp-client | --stamp      (`./run web` builds)
"""

import hashlib
import os
import re
import sys
from pathlib import Path

from tests.reference import ROOT, openapi

WEB = ROOT / "web"
CLIENT = WEB / "src" / "api.d.ts"
BUILT = ROOT / "src" / "recollect" / "doors" / "web" / "static"
STAMP = BUILT / "built-from.txt"
MADE_FROM = re.compile(r"^// Made by `\./run web` from the API whose document has the SHA-256 (\w+)\.$", re.MULTILINE)


def sources() -> str:
    """A hash of everything that the page is built from."""
    files = [file for file in WEB.rglob("*") if file.is_file() and "node_modules" not in file.parts]
    digest = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.relative_to(WEB).as_posix()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{content}  {file.relative_to(WEB).as_posix()}\n".encode())
    return digest.hexdigest()


def api() -> str:
    return hashlib.sha256(openapi().encode()).hexdigest()


def stale() -> list[str]:
    """What is older than what it is made from, as sentences."""
    found = []
    made_from = MADE_FROM.search(CLIENT.read_text()) if CLIENT.exists() else None
    if made_from is None or made_from[1] != api():
        found.append("The page's client (web/src/api.d.ts) is not that of this API: ./run web makes it anew.")
    if not STAMP.exists() or STAMP.read_text().strip() != sources():
        found.append("The built page is not the page of the sources in web/: ./run web builds it anew.")
    return found


def main(arguments: list[str]) -> int:
    for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
        del os.environ[name]
    match arguments:
        case ["--openapi", file]:
            Path(file).write_text(openapi())
        case ["--stamp-client"]:
            made = f"// Made by `./run web` from the API whose document has the SHA-256 {api()}.\n"
            CLIENT.write_text(made + CLIENT.read_text())
        case ["--stamp"]:
            STAMP.write_text(sources() + "\n")
        case _:
            print("\n".join(stale()), end="\n" if stale() else "")
            return 1 if stale() else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
