"""The model inside is loaded while something else is done."""

import threading

import pytest

from recollect.errors import ProviderMisbehaved
from recollect.providers import embedders, minilm


def wait_for_the_model() -> None:
    for thread in threading.enumerate():
        if thread.name == embedders.PREPARING:
            thread.join()


def test_the_model_is_loaded_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(minilm, "the_model", lambda: asked.append(threading.current_thread().name))
    embedders.prepare("minilm")
    wait_for_the_model()
    assert asked == [embedders.PREPARING]


@pytest.mark.parametrize("spec", ["hashing:32", "openai:text-embedding-3-small", "ollama:bge-m3", "static"])
def test_nothing_else_is_loaded_or_asked_unasked(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "the_model", lambda: pytest.fail("nobody needs it"))
    embedders.prepare(spec)
    assert not [thread for thread in threading.enumerate() if thread.name == embedders.PREPARING]


def test_a_damaged_model_is_said_to_whoever_needs_it_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged() -> None:
        raise ProviderMisbehaved("damaged")

    monkeypatch.setattr(minilm, "the_model", damaged)
    embedders.prepare("minilm")
    wait_for_the_model()
