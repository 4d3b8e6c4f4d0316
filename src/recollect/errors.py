"""Every way Recollect says no. Each message is a sentence: what was wrong, and what to do.

RecollectError
├── InvalidInput            the caller's value cannot be accepted; nothing was changed
│   └── DuplicateText       the same text is remembered already (names the existing id)
│       └── ForgottenText       it is, but out of recall (says how to bring it back)
├── NotFound                no such memory, plan, space, job, key
├── Conflict                the world has moved: stale plan, undo blocked by a later change
│   └── Busy                    somebody else is at it: try again
├── NotAuthenticated        no key, a wrong key, an expired key
├── NotAllowed              a valid key that lacks the scope or the space
├── DatabaseProblem         the database cannot be used
│   ├── DataDirectoryProblem    the directory of the database inside
│   ├── ServerDidNotStart       the database inside did not come up
│   └── UnsuitableServer        wrong PostgreSQL version, no pgvector, no rights
├── ProviderProblem         an embedder or model outside did not do its work
│   ├── ProviderUnavailable     for now: try again (429, 5xx, time-out, refused)
│   └── ProviderMisbehaved      for good: wrong dimension, malformed body, refused key
└── NotInstalled            an optional part is needed; the message names the extra
"""

from uuid import UUID


class RecollectError(Exception):
    """The root: catch this to catch everything Recollect raises on purpose."""

    code = "error"

    @property
    def message(self) -> str:
        return str(self.args[0]) if self.args else self.code

    @property
    def more(self) -> dict[str, str]:
        """What a program may want to know besides: which field was wrong, or what is there already."""
        details = {name: getattr(self, name, None) for name in ("field", "existing_id")}
        return {name: str(value) for name, value in details.items() if value is not None}


class InvalidInput(RecollectError):
    code = "invalid_input"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class DuplicateText(InvalidInput):
    code = "duplicate"

    def __init__(self, existing_id: UUID) -> None:
        super().__init__(f"This text is remembered already, as {existing_id}.", field="text")
        self.existing_id = existing_id


class ForgottenText(DuplicateText):
    code = "forgotten"

    def __init__(self, existing_id: UUID, *, excluded: bool = False) -> None:
        super().__init__(existing_id)
        self.args = (
            f"This text is remembered as {existing_id}, but kept out of recall: `recollect include` lets it in again."
            if excluded
            else f"This text was forgotten, as {existing_id}: `recollect restore` brings it back.",
        )


KNOWN_TEXT = (DuplicateText.code, ForgottenText.code)


class NotFound(RecollectError):
    code = "not_found"


class Conflict(RecollectError):
    code = "conflict"


class Busy(Conflict):
    code = "busy"


class NotAuthenticated(RecollectError):
    code = "not_authenticated"


class NotAllowed(RecollectError):
    code = "not_allowed"


class DatabaseProblem(RecollectError):
    code = "database_problem"


class DataDirectoryProblem(DatabaseProblem):
    code = "data_directory_problem"


class ServerDidNotStart(DatabaseProblem):
    code = "server_did_not_start"


class UnsuitableServer(DatabaseProblem):
    code = "unsuitable_server"


class ProviderProblem(RecollectError):
    code = "provider_problem"


class ProviderUnavailable(ProviderProblem):
    code = "provider_unavailable"

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ProviderMisbehaved(ProviderProblem):
    code = "provider_misbehaved"


class NotInstalled(RecollectError):
    code = "not_installed"
