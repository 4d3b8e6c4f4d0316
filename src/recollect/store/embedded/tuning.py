"""The settings a new cluster gets, written into its postgresql.conf once: edit them there."""

import os
import shutil
from pathlib import Path

MB = 1024 * 1024
WAL_SEGMENT_MB = 4
SMALLEST_SENSIBLE_LIMIT = 64 * MB
CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
SHARED_MEMORY = Path("/dev/shm")


def settings_for(memory_bytes: int) -> dict[str, str]:
    memory = memory_bytes // MB
    maintenance = _between(64, memory // 16, 1024)
    return {
        "listen_addresses": "",  # the socket is the only way in
        "unix_socket_permissions": "0700",
        "max_connections": "100",
        "shared_buffers": f"{_between(128, memory // 8, 512)}MB",
        "effective_cache_size": f"{_between(128, memory // 2, 64 * 1024)}MB",
        "work_mem": "16MB",  # what a large plan sorts and joins stays off the disk
        "maintenance_work_mem": f"{maintenance}MB",
        "random_page_cost": "1.1",
        "jit": "off",  # compiling costs more than it saves on queries of milliseconds
        "fsync": "on",
        "wal_compression": "pglz",
        # What was written ahead is deleted once it is in the tables, not kept for the next load: a home at rest is as
        # large as what it holds (ADR 23).
        "wal_recycle": "off",
        "min_wal_size": f"{2 * WAL_SEGMENT_MB}MB",
        "max_wal_size": "1GB",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_checkpoints": "off",
        "log_min_error_statement": "panic",  # statements hold people's memories: they stay out of the log
        **_room_for_parallel_builds(maintenance * MB),
    }


def memory_bytes() -> int:
    """What this machine, or the container we are in, has."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *(limit for path in CGROUP_LIMITS if (limit := _limit(path)))])


def _room_for_parallel_builds(needed: int) -> dict[str, str]:
    """A parallel index build shares its working memory in /dev/shm, of which a container has 64 MB unless told."""
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).total < 2 * needed:
        return {"dynamic_shared_memory_type": "sysv"}
    return {}


def _limit(path: Path) -> int | None:
    try:
        limit = int(path.read_text())
    except (OSError, ValueError):  # no such file here, or the word "max"
        return None
    return limit if limit >= SMALLEST_SENSIBLE_LIMIT else None


def _between(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))
