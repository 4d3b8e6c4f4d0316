"""Executors: where blocks are worked on (X01): in this process, or on the cluster of RECOLLECT_RAY (providers/ray)."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from recollect.ports import Block, Executor, Made, Shared


class LocalExecutor:
    """Blocks on the threads of this process; with one thread, each when it is asked for."""

    name = "local"

    def __init__(self, threads: int = 1) -> None:
        self.width = max(1, threads)

    def submit(self, work: Callable[[Shared, Block], Made], shared: Shared, block: Block) -> "Future[Made]":
        future: Future[Made] = Future()
        fulfil(future, work, shared, block)
        return future

    def map(
        self,
        work: Callable[[Shared, Block], Made],
        shared: Shared,
        blocks: Iterable[Block],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Made]:
        if self.width == 1:
            yield from told((work(shared, block) for block in blocks), progress)
            return
        with ThreadPoolExecutor(self.width) as pool:
            yield from told(in_order(lambda block: pool.submit(work, shared, block), blocks, self.width), progress)

    def close(self) -> None:
        """Nothing is open between two maps."""


def fulfil(future: "Future[Made]", work: Callable[[Shared, Block], Made], shared: Shared, block: Block) -> None:
    """Do the work, for whoever holds the future."""
    try:
        future.set_result(work(shared, block))
    except Exception as problem:  # noqa: BLE001 -- whatever it is, whoever asks for the result is told
        future.set_exception(problem)


def in_order(submit: Callable[[Block], "Future[Made]"], blocks: Iterable[Block], ahead: int) -> Iterator[Made]:
    """The results in the order of the blocks, a few worked out ahead; what nobody waits for any more is given up."""
    waiting: deque[Future[Made]] = deque()
    try:
        for block in blocks:
            waiting.append(submit(block))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def told(results: Iterable[Made], progress: Callable[[int], None] | None) -> Iterator[Made]:
    for number, result in enumerate(results, 1):
        if progress is not None:
            progress(number)
        yield result


def make_executor(ray: str, *, must_answer: bool = True) -> Executor | None:
    """The cluster that the setting RECOLLECT_RAY names; None where it names none, and all is done in this process.

    An address where nothing answers is a mistake to be mended; `auto` takes what there is.
    """
    if not ray:
        return None
    from recollect.providers.ray import AUTO, RayExecutor

    return RayExecutor(ray, must_answer=must_answer and ray != AUTO)
