"""The server on a real socket, and as a process of its own that a signal ends in good order."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from recollect.doors.api import server
from recollect.doors.api.access import MAX_BODY_BYTES
from recollect.doors.api.app import create_app
from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput
from recollect.model import Scope
from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer
from tests import programs
from tests.doors import test_api_support as support
from tests.doors.test_api_support import key_for, problem, visitor
from tests.waiting import HANG_SECONDS, until

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

MEMORIES = "/api/v1/memories"
CHILD = """
from recollect import logs
from recollect.doors.api.server import serve
from recollect.settings import Settings
logs.configure(level="info", format="json")
serve(Settings.load(), ready=lambda address: print(address, flush=True))
"""


@pytest.fixture(scope="module")
def address(api_settings: Settings) -> Iterator[str]:
    with support.listening(api_settings) as address:
        yield address


def text_sent(address: str, request: str) -> str:
    """What the server answers to these very bytes."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=HANG_SECONDS) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer.decode()


# -- on a socket


def test_D09_a_memory_goes_in_and_comes_out(address: str) -> None:
    with httpx.Client(base_url=address, timeout=HANG_SECONDS) as client:
        node = client.post(f"{MEMORIES}?wait=true", json={"text": "over a real socket"}).raise_for_status().json()
        found = client.post("/api/v1/search", json={"query": "over a real socket"}).json()
        assert found["hits"][0]["node"]["id"] == node["id"]
        assert "server" not in client.get("/health/live").headers


def test_E28_the_socket_tells_who_is_calling_not_a_header(address: str) -> None:
    with httpx.Client(base_url=address, timeout=HANG_SECONDS) as client:
        assert client.get(MEMORIES).status_code == 200
        for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded"):
            problem(client.get(MEMORIES, headers={name: "127.0.0.1"}), 401, "not_authenticated")


def test_E28_a_request_without_Host_is_refused(address: str) -> None:
    assert text_sent(address, f"GET {MEMORIES} HTTP/1.0\n\n").startswith("HTTP/1.1 403")
    assert text_sent(address, f"GET {MEMORIES} HTTP/1.1\nConnection: close\n\n").startswith("HTTP/1.1 400")


def test_D01_a_body_that_never_ends_is_cut_off(address: str) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 100_000 + 10):
            yield b"[" * 100_000

    with httpx.Client(base_url=address, timeout=HANG_SECONDS) as client:
        answer = client.post(MEMORIES, content=pieces(), headers={"Content-Type": "application/json"})
        problem(answer, 413, "too_large")


def test_D03_an_export_that_nobody_hears_out_frees_its_connection(address: str) -> None:
    long = "long" * 25_000  # one word: what is slow about words is not looked at here
    with httpx.Client(base_url=address, timeout=HANG_SECONDS) as client:
        client.post(f"{MEMORIES}/batch", json=[{"text": f"{long} {n}"} for n in range(200)]).raise_for_status()
        for _ in range(6):  # more often than there are connections
            with client.stream("GET", "/api/v1/export") as answer:
                next(answer.iter_bytes())
        assert client.get("/health/ready").status_code == 200
        assert len(client.get("/api/v1/export").text.splitlines()) >= 200


def test_D09_many_callers_at_once(address: str) -> None:
    answers: list[int] = []

    def call(number: int) -> None:
        with httpx.Client(base_url=address, timeout=HANG_SECONDS) as client:
            for again in range(5):
                answers.append(client.post(MEMORIES, json={"text": f"{number} and {again}"}).status_code)
                answers.append(client.get(MEMORIES).status_code)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] * 60 + [201] * 60


# -- where it listens


def test_E28_a_port_in_use_is_one_clear_sentence(api_settings: Settings) -> None:
    with closing(server.bind("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=rf"port {port} of 127\.0\.0\.1: another program uses it"):
            server.serve(api_settings.model_copy(update={"port": port}))


@pytest.mark.parametrize(
    ("host", "kind", "sentence"),
    [
        ("no-such-host.invalid", InvalidInput, "is not known"),
        ("192.0.2.1", Conflict, "this machine has no such address"),
    ],
)
def test_E28_a_wrong_host_is_one_clear_sentence(
    api_settings: Settings, host: str, kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        server.serve(api_settings.model_copy(update={"host": host, "port": 0}))


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_E28_without_a_key_it_is_not_opened_to_other_machines(api_settings: Settings, host: str) -> None:
    with pytest.raises(InvalidInput, match=r"no API key was ever made.*`recollect keys add`"):
        server.serve(api_settings.model_copy(update={"host": host, "port": 0}))


@pytest.mark.anyio
async def test_E28_with_a_key_it_may_be(engine: Engine) -> None:
    await key_for(engine, Scope.READ)
    with closing(server.bind("0.0.0.0", 0)) as listener:
        await server._refuse_open_house(engine, listener)


@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "http://127.0.0.1:"), ("localhost", "http://"), ("::1", "http://[::1]:")]
)
def test_E28_the_address_is_shown_as_it_is_typed(host: str, shown: str) -> None:
    with closing(server.bind(host, 0)) as listener:
        assert server.address_of(listener).startswith(shown)


# -- as a process


def environment(home: Path, **settings: str) -> dict[str, str]:
    chosen = {"HOME": str(home), "EMBEDDER": "hashing:64", "PORT": "0", "WORKER_POLL_SECONDS": "0.1", **settings}
    return {**os.environ, **{f"RECOLLECT_{name}": value for name, value in chosen.items()}}


@contextmanager
def child(home: Path, **settings: str) -> Iterator["subprocess.Popen[str]"]:
    process = programs.Popen[str](
        [sys.executable, "-c", CHILD],
        env=environment(home, **settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()  # so that a test that failed leaves no database behind
        process.communicate(timeout=HANG_SECONDS)


def is_running(home: Path) -> bool:
    return EmbeddedServer(home).data_directory.joinpath("postmaster.pid").exists()


def is_open(address: str) -> bool:
    url = urlsplit(address)
    try:
        socket.create_connection((url.hostname or "", url.port or 0)).close()
    except ConnectionError:
        return False
    return True


@contextmanager
def under_way(address: str, body: bytes) -> Iterator[Callable[[], HTTPResponse]]:
    """A request that the server has begun to handle, and whose body it waits for; what is given sends the rest."""
    with closing(HTTPConnection(urlsplit(address).netloc, timeout=HANG_SECONDS)) as connection:
        connection.putrequest("POST", f"{MEMORIES}/batch")
        for name, value in {"Content-Type": "application/json", "Expect": "100-continue"}.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        assert connection.sock.recv(1000).startswith(b"HTTP/1.1 100 ")

        def sent() -> HTTPResponse:
            connection.send(body)
            return connection.getresponse()

        yield sent


def test_D10_the_whole_server_works_and_SIGTERM_ends_it_in_good_order(new_home: Path) -> None:
    with child(new_home) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with httpx.Client(base_url=address, timeout=HANG_SECONDS) as client:
            assert client.get("/health/ready").json() == {"status": "ok"}
            node = client.post(MEMORIES, json={"text": "embedded by the worker beside"}).json()
            until(lambda: client.get("/health").json()["waiting_jobs"] == 0)
            hits = client.get("/api/v1/search", params={"q": "embedded by the worker beside"}).json()["hits"]
            assert hits[0]["node"]["id"] == node["id"]
            assert is_running(new_home)
        batch = json.dumps([{"text": f"number {n}"} for n in range(20)]).encode()
        with under_way(address, batch) as sent:
            process.send_signal(signal.SIGTERM)
            until(lambda: not is_open(address))  # it is stopping, and answers what is under way all the same
            answer = sent()
            assert (answer.status, json.load(answer)["stored"]) == (201, 20)
        _, log = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == 0, log
        assert not is_running(new_home)
        assert "Traceback" not in log
        lines = [json.loads(line) for line in log.splitlines()]
        assert next(line["address"] for line in lines if line["event"] == "listening") == address
        assert any("localhost only" in line["event"] for line in lines)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_D10_a_signal_while_it_starts_is_obeyed(empty_home: Path, number: signal.Signals) -> None:
    with child(empty_home) as process:
        until(lambda: empty_home.exists())
        process.send_signal(number)
        _, log = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == 0, log
        assert "Traceback" not in log
        assert not is_running(empty_home)


@pytest.mark.anyio
async def test_E27_when_the_database_inside_has_stopped_it_is_not_ready(new_home: Path) -> None:
    with EmbeddedServer(new_home) as inside:
        settings = Settings.load(database_url=inside.url, embedder="hashing:64")
        async with Engine(settings) as engine, visitor(create_app(engine)) as client:
            assert (await client.get("/health/ready")).status_code == 200
            inside.release()
            assert (await client.get("/health/ready")).json() == {"status": "unavailable"}
            problem(await client.get(MEMORIES), 503, "database_problem")


def test_D03_JSON_is_the_same_over_the_socket(address: str) -> None:
    """Also for what JSON allows and HTTP libraries rarely send: escapes, astral characters, exponents."""
    body = '{"text": "\\u00e9\\ud83e\\udd8a \\/ end", "importance": 5e-1, "metadata": {"extra": {"n": 1.0}}}'
    with httpx.Client(base_url=address, timeout=HANG_SECONDS) as client:
        node = client.post(MEMORIES, content=body, headers={"Content-Type": "application/json; charset=utf-8"}).json()
    assert node["text"] == "é🦊 / end"
    assert (node["importance"], node["metadata"]) == (0.5, json.loads('{"extra": {"n": 1.0}}'))


# -- callers that take their time (S02)


def test_S02_whoever_does_not_say_what_they_want_is_not_waited_for(api_settings: Settings) -> None:
    hasty = api_settings.model_copy(update={"header_seconds": 0.2})
    with support.listening(hasty) as address:
        where = (urlsplit(address).hostname, urlsplit(address).port)
        for said in (b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: localhost\r\n"):
            with closing(socket.create_connection(where, timeout=HANG_SECONDS)) as slow:
                slow.sendall(said)
                assert slow.recv(1) == b"", "the server hangs up"
        assert httpx.get(f"{address}/health").status_code == 200


def test_S02_the_rest_of_a_body_that_was_answered_is_not_waited_for(api_settings: Settings) -> None:
    hasty = api_settings.model_copy(update={"header_seconds": 0.5})
    with support.listening(hasty) as address:
        where = (urlsplit(address).hostname, urlsplit(address).port)
        with closing(socket.create_connection(where, timeout=HANG_SECONDS)) as slow:
            slow.sendall(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
            assert b"404" in slow.recv(1000)
            with pytest.raises(ConnectionError):  # noqa: PT012 - whichever of them meets the end
                for _ in range(int(HANG_SECONDS / 0.1)):
                    slow.sendall(b"x")
                    time.sleep(0.1)  # G09: whoever trickles naps between two bytes


def test_S02_whoever_leaves_before_all_is_said_is_no_fault_of_ours(api_settings: Settings) -> None:
    said = b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n["
    with support.listening(api_settings) as address:
        where = (urlsplit(address).hostname, urlsplit(address).port)
        with closing(socket.create_connection(where, timeout=HANG_SECONDS)) as hasty:
            hasty.sendall(f"POST {MEMORIES}/batch HTTP/1.1\r\n".encode() + said)
            time.sleep(0.2)  # G09: so that it is being read; where it is not yet, the answer is the same
        until(lambda: 'status="499"' in httpx.get(f"{address}/metrics").text)
        assert 'status="500"' not in httpx.get(f"{address}/metrics").text


def test_S02_beyond_so_many_connections_the_others_are_told(api_settings: Settings) -> None:
    few = api_settings.model_copy(update={"max_connections": 3})
    with support.listening(few) as address:
        where = (urlsplit(address).hostname, urlsplit(address).port)
        held = [socket.create_connection(where, timeout=HANG_SECONDS) for _ in range(3)]
        until(lambda: httpx.get(f"{address}/health").status_code == 503)
        for one in held:
            one.close()
        until(lambda: httpx.get(f"{address}/health").status_code == 200)


def test_S02_what_nobody_waits_for_any_more_is_not_worked_on(
    api_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ended = threading.Event(), threading.Event()

    async def endless(*_: object, **__: object) -> None:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    monkeypatch.setattr(Engine, "recall", endless)
    monkeypatch.setattr(Engine, "list", endless)
    with support.listening(api_settings) as address:
        where = (urlsplit(address).hostname, urlsplit(address).port)
        for head, body in (("POST /api/v1/search", '{"query": "x"}'), (f"GET {MEMORIES}", "")):
            began.clear()
            ended.clear()
            said = f"{head} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            with closing(socket.create_connection(where, timeout=HANG_SECONDS)) as caller:
                caller.sendall(f"{said}Content-Length: {len(body)}\r\n\r\n{body}".encode())
                assert began.wait(HANG_SECONDS)
            assert ended.wait(HANG_SECONDS)
