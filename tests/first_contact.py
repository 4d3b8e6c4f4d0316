"""What a stranger does first, with the installed package and nothing else: every door is opened once (G01).

`./run try-install` builds the wheel, installs it without extras into an empty environment, and runs this with that
environment's Python. So it may import the standard library alone; what development needs is not there.

    python tests/first_contact.py README.md DIRECTORY      (the directory takes the home and the database; it is empty)
"""

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import traceback
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

README, PLACE = Path(sys.argv[1]), Path(sys.argv[2])
PROGRAM = Path(sys.executable).with_name("recollect")
FRAMEWORKS = {
    "recollect.integrations.langchain": "langchain_core",
    "recollect.integrations.langgraph": "langgraph",
    "recollect.integrations.llama_index": "llama_index",
    "recollect.integrations.openai_agents": "agents",
    "recollect.integrations.pydantic_ai": "pydantic_ai",
}
PATIENCE = 300  # seconds until something hangs; no measure of speed
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "stranger", "version": "1"}}


def main() -> int:
    tries = (every_module, the_demo, the_three_lines, a_plan, the_server, an_agent)
    failed = sum(not holds(one) for one in tries)
    print(f"first-contact: {len(tries) - failed} passed, {failed} failed")
    return 1 if failed else 0


def holds(trial: Callable[[], None]) -> bool:
    name = trial.__name__.replace("_", " ")
    try:
        trial()
    except Exception:  # noqa: BLE001 - whatever goes wrong is what this looks for; it is shown, and the rest is tried
        traceback.print_exc()
        print(f"  FAILED  {name}")
        return False
    print(f"  ok      {name}")
    return True


def every_module() -> None:
    """Nothing in the package needs an extra, or what development has, to be imported; an adapter only its framework."""
    import recollect

    for module in pkgutil.walk_packages(recollect.__path__, "recollect."):
        if module.name.endswith("__main__") or ".migrations." in module.name:
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] != FRAMEWORKS.get(module.name):
                raise


def the_demo() -> None:
    told = recollect("demo", "--json")
    assert told["seconds"] > 0, told


def the_three_lines() -> None:
    """The first Python of the README, as it stands there; it ends without a word on stderr."""
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert code, "the README has no Python in it"
    answer = run(sys.executable, "-c", code[1])
    assert "Linh prefers tea, never coffee" in answer, answer


def a_plan() -> None:
    """Two links between the same two memories become one, and two again."""
    tea, rain = (recollect("add", text, "--json")["id"] for text in ("Tea in the garden", "Rain all day"))
    for relation in ("extends", "similar"):
        recollect("link", tea, rain, "--relation", relation, "--json")
    plan = recollect("plan", "merge-edges", "--json")
    assert plan["counts"] == {"proposed": 1}, plan["counts"]
    assert recollect("apply", plan["id"], "--json")["applied"] == 1
    assert recollect("graph", "stats", "--json")["edges"] == 1
    assert recollect("undo", plan["id"], "--json")["applied"] == 1
    assert recollect("graph", "stats", "--json")["edges"] == 2


def the_server() -> None:
    """A memory goes in and out over REST, and the page is there with its script."""
    with started("serve", "--port", "0", "--json") as server:
        address = json.loads(server.document())["address"]
        text = "The bins go out on Tuesday"
        call(f"{address}/api/v1/memories?wait=true", {"text": text})
        hits = json.loads(call(f"{address}/api/v1/search", {"query": "when do the bins go out?"}))
        assert text in json.dumps(hits), hits
        shell = call(f"{address}/")
        (script,) = re.findall(r'<script type="module"[^>]*src="([^"]+)"', shell)
        assert len(call(f"{address}/{script.lstrip('./')}")) > 1000
        server.ends_when_told()


def an_agent() -> None:
    """An agent shakes hands, lists the tools, and calls one."""
    with started("mcp") as server:
        server.asks("initialize", INITIALIZE)
        server.tells("notifications/initialized")
        tools = [tool["name"] for tool in server.asks("tools/list")["tools"]]
        assert "recall" in tools, tools
        answer = server.asks("tools/call", {"name": "recall", "arguments": {"query": "what does Linh drink?"}})
        assert "Linh prefers tea" in json.dumps(answer), answer
        server.ends_with_its_input()


# -- running


def environment() -> dict[str, str]:
    """As bare as a stranger's: an empty home, and the database in it."""
    home = PLACE / "home"
    home.mkdir(exist_ok=True)
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**keep, "HOME": str(home), "RECOLLECT_HOME": str(PLACE / "memory")}


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=PLACE, env=environment())
    assert (done.returncode, done.stderr) == (0, ""), f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def recollect(*arguments: str) -> dict[str, Any]:
    return dict(json.loads(run(PROGRAM, *arguments)))


def call(address: str, body: Mapping[str, Any] | None = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data=data, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return str(answer.read().decode())


class started:  # noqa: N801 - reads as a verb: with started("serve") as server
    """A command that goes on until it is told to end; killed where it does not."""

    def __init__(self, *arguments: str) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([PROGRAM, *arguments], **pipes, text=True, cwd=PLACE, env=environment())  # type: ignore[call-overload]
        self.number = 0

    def __enter__(self) -> "started":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def document(self) -> str:
        """The JSON document it begins with."""
        lines = ""
        while not lines.endswith("}\n"):
            line = self.process.stdout.readline()
            assert line, f"it ended with exit code {self.process.wait()} and {lines!r}"
            lines += line
        return lines

    def tells(self, method: str, **more: object) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method, **more}) + "\n")
        self.process.stdin.flush()

    def asks(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self.number += 1
        self.tells(method, id=self.number, params=params or {})
        answer = json.loads(self.process.stdout.readline())
        assert "result" in answer, answer
        return dict(answer["result"])

    def ends_when_told(self) -> None:
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.process.returncode

    def ends_with_its_input(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0, self.process.returncode
        self.process.stdin = None


if __name__ == "__main__":
    sys.exit(main())
