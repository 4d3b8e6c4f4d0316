"""The embedder over HTTP, for peers that document no other way: OpenAI's protocol, in a thread of their own process.

What that way costs (about a millisecond a call) is a part of their figures, as it would be for whoever uses them so.
"""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from bench.peers.drivers.driver import Embedder


def serve_embedder(embed: Embedder) -> str:
    """The address under which `/embeddings` answers, until the process ends."""

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            given = asked["input"]
            vectors = embed([given] if isinstance(given, str) else given)
            in_letters = asked.get("encoding_format") == "base64"
            data = [
                {"object": "embedding", "index": place, "embedding": _encoded(one) if in_letters else one.tolist()}
                for place, one in enumerate(vectors)
            ]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            body = json.dumps({"object": "list", "model": "minilm", "data": data, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def _encoded(vector: "np.ndarray[tuple[int], np.dtype[np.float32]]") -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
