"""A small real server on loopback that answers as OpenAI, Anthropic and Ollama do, and misbehaves on request.

    with ModelServer() as server:
        settings = Settings.load(model="openai:test", model_url=server.url_of("openai"))
        server.says = "Linh drinks tea [Memory 1]."                                 # from now on
        server.replies.append(Reply(status=429, headers={"Retry-After": "7"}))      # for the next request only

What was received is in `server.received`: the path, the headers, the body.
"""

from tests.local_server import LocalServer, Received, Reply, json_reply

PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}
PROMPT_TOKENS, COMPLETION_TOKENS = 120, 30


class Asked(Received):
    @property
    def system(self) -> str:
        return str(self.body["system"] if "system" in self.body else self.body["messages"][0]["content"])

    @property
    def prompt(self) -> str:
        return str(self.body["messages"][-1]["content"])


class ModelServer(LocalServer[Asked]):
    def __init__(self) -> None:
        super().__init__(Asked)
        self.says = "As far as the memories tell [Memory 1].\nConfidence: 0.9"
        self.is_cut = False
        self.refuses: dict[str, str] = {}  # a parameter of the body, and the words with which it is refused

    def url_of(self, provider: str) -> str:
        return f"{self.url}/v1" if provider == "openai" else self.url

    def answer(self, request: Asked) -> Reply:
        return self._refusal(request) or self._completion(request.path)

    def _refusal(self, request: Asked) -> Reply | None:
        for parameter, words in self.refuses.items():
            if parameter in request.body:
                return json_reply({"error": {"message": words}}, status=400)
        return None

    def _completion(self, path: str) -> Reply:
        if path == PATHS["openai"]:
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": self.says},
                "finish_reason": "length" if self.is_cut else "stop",
            }
            usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS, "total_tokens": 150}
            return json_reply({"object": "chat.completion", "choices": [choice], "usage": usage})
        if path == PATHS["anthropic"]:
            half = len(self.says) // 2
            content = [{"type": "text", "text": part} for part in (self.says[:half], self.says[half:])]
            usage = {"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS}
            reason = "max_tokens" if self.is_cut else "end_turn"
            return json_reply({"type": "message", "content": content, "usage": usage, "stop_reason": reason})
        if path == PATHS["ollama"]:
            counts = {"prompt_eval_count": PROMPT_TOKENS, "eval_count": COMPLETION_TOKENS}
            message = {"role": "assistant", "content": self.says}
            return json_reply({"message": message, "done_reason": "length" if self.is_cut else "stop", **counts})
        return Reply(status=404, body=b'{"error": "no such path"}')
