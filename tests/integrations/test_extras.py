"""An adapter whose framework is not installed says how to get it."""

import importlib
import sys

import pytest

FRAMEWORKS = {
    "langchain": "langchain_core.chat_history",
    "langgraph": "langgraph.store.base",
    "llama_index": "llama_index.core.memory",
    "openai_agents": "agents.memory.session",
    "pydantic_ai": "pydantic_ai",
}


@pytest.mark.parametrize(("adapter", "framework"), FRAMEWORKS.items())
def test_without_its_framework_an_adapter_names_the_extra(
    adapter: str, framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, framework, None)
    monkeypatch.delitem(sys.modules, f"recollect.integrations.{adapter}", raising=False)
    with pytest.raises(ImportError, match=rf"`pip install 'recollect\[{adapter.replace('_', '-')}\]'` adds it"):
        importlib.import_module(f"recollect.integrations.{adapter}")
