#!/usr/bin/env python3
"""Answers like `weft serve` with fixed texts: it has its API and no models, so that tests of the page need none.

    tests/serve/mock_server.py page.html 8080   # then open http://127.0.0.1:8080/
"""

import json
import math
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Optional

MODELS = {  # name: (kind, tasks)
    "smollm2-135m-instruct": ("gpt", ["completions", "chat", "attention"]),
    "gpt-tales": ("gpt", ["completions", "attention"]),
    "de-en": ("transformer", ["translate", "attention"]),
    "sst2": ("bert", ["embeddings", "classify", "attention"]),
}
ANSWERS = [
    "A kernel is cut into small tiles, and a tile is the unit of arithmetic. Tiles follow from shapes alone, so the "
    "same request gives the same bits on one thread and on sixty-four.\n\nTwo consequences:\n"
    "  • sums have a fixed order;\n  • an idle worker takes half of what another one has left.",
    "Yes. Close the connection, and the pages of the text are free again. <b>Nothing</b> & no one else waits for it.",
]
CONTINUATION = " and the daughter of the miller went to the river, where the grey heron stood."
TRANSLATIONS = {
    "Ein kleiner Hund läuft über den nassen Strand.": ("A small dog runs across the wet beach.", -2.31),
    "Zwei Frauen sitzen auf einer Bank und lachen.": ("Two women sit on a bench and laugh.", -1.87),
    "Der Junge wirft seinem Vater einen roten Ball zu.": ("The boy throws a red ball to his father.", -3.06),
}


def tokens_of(text: str) -> list[str]:
    """Returns words in pieces of at most five characters, of which the first has the mark of a word's beginning."""
    return [("▁" if i == 0 else "") + word[i:i + 5] for word in text.split() for i in range(0, len(word), 5)]


def attention(layers: int, heads: int, targets: int, sources: int, causal: bool) -> list:
    """Returns weights [layer][head][target][source] that wander with the head, and rows that sum to 1."""
    def row(layer, head, t):
        seen = t + 1 if causal else sources
        centre = t - head if causal else (t + 0.5) * sources / targets - 0.5 + 0.3 * (head - 1)
        weights = [math.exp(-abs(s - centre) * (0.5 + layer)) + (0.3 if s == 0 and causal else 0) for s in range(seen)]
        return [round(w / sum(weights), 4) for w in weights] + [0] * (sources - seen)
    return [[[row(layer, head, t) for t in range(targets)] for head in range(heads)] for layer in range(layers)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def _send(self, status: int, body: bytes, kind: str = "application/json", **headers) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _json(self, value) -> None:
        self._send(200, json.dumps(value).encode())

    def _error(self, status: int, message: str, **headers) -> None:
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        self._send(status, json.dumps({"error": error}).encode(), **headers)

    def _refused(self) -> bool:
        if self.server.key and self.headers["Authorization"] != f"Bearer {self.server.key}":
            self._error(401, "the key is missing or wrong")
            return True
        return False

    def do_GET(self) -> None:
        if self.path == "/":
            self._send(200, self.server.page, "text/html; charset=utf-8")
        elif self.path == "/health":
            self._json({"status": "ok"})
        elif self._refused():
            pass
        elif self.path == "/metrics":
            tokens = int(40 * time.monotonic())  # 40 a second
            self._send(200, b"# TYPE weft_tokens_total counter\nweft_tokens_total %d\n" % tokens +
                            b"process_resident_memory_bytes 412876800\nweft_pages_used{model=\"a\"} 11\n"
                            b"weft_pages_used{model=\"b\"} 7\nweft_pages 256\nweft_queue_length 0\n"
                            b"weft_texts_running 1\n", "text/plain; version=0.0.4")
        elif self.path == "/v1/models":
            self._json({"object": "list", "data": [
                {"id": name, "object": "model", "created": 1764374400, "owned_by": "weft",
                 "weft": {"kind": MODELS[name][0], "tasks": MODELS[name][1], "context": 2048}}
                for name in self.server.models]})
        else:
            self._error(404, f"there is no {self.path}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._refused():
            return
        self.server.requests.append((self.path, body))
        if self.server.failures:
            self._error(*self.server.failures.pop(0))
            return
        answer = {"/v1/chat/completions": self._chat, "/v1/completions": self._complete, "/translate": self._translate,
                  "/v1/classify": self._classify, "/attention": self._attention}[self.path]
        answer(body)

    def _stream(self, text: str, choice) -> None:
        """Sends a text word by word until the client leaves."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        pieces = [piece + " " for piece in text.split(" ")]
        pieces[-1] = pieces[-1][:-1]
        events = [json.dumps({"choices": [choice(piece, None)]}) for piece in pieces]
        events += [json.dumps({"choices": [choice("", "stop")]}), "[DONE]"]
        events = events[:self.server.cut]
        try:
            for event in events:
                data = f"data: {event}\n\n".encode()
                self.wfile.write(data[:7])  # an event in two parts
                self.wfile.flush()
                time.sleep(self.server.pause)
                self.wfile.write(data[7:])
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.server.left += 1
        self.close_connection = True

    def _chat(self, body: dict) -> None:
        turn = sum(message["role"] == "user" for message in body["messages"]) - 1
        self._stream(ANSWERS[turn % len(ANSWERS)], lambda piece, end: {
            "index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": end})

    def _complete(self, body: dict) -> None:
        self._stream(CONTINUATION, lambda piece, end: {"index": 0, "text": piece, "finish_reason": end})

    def _translate(self, body: dict) -> None:
        self._json({"model": body["model"], "translations": [
            {"source": line, "text": TRANSLATIONS.get(line, (line.upper(), 0))[0],
             "log_probability": TRANSLATIONS.get(line, ("", -9.5))[1]} for line in body["text"].split("\n")]})

    def _classify(self, body: dict) -> None:
        self._json({"model": body["model"], "results": [
            {"labels": [{"label": "positive", "score": 0.982}, {"label": "negative", "score": 0.018}]}]})

    def _attention(self, body: dict) -> None:
        tokens = tokens_of(body["text"])
        if MODELS[body["model"]][0] != "transformer":
            self._json({"tokens": tokens, "attention": attention(4, 6, len(tokens), len(tokens), True)})
            return
        source, target = tokens + ["</s>"], ["<s>"] + tokens_of(body.get("target") or body["text"].upper())
        self._json({"tokens": {"encoder": source, "decoder": target},
                    "encoder": attention(3, 4, len(source), len(source), False),
                    "decoder": attention(3, 4, len(target), len(target), True),
                    "cross": attention(3, 4, len(target), len(source), False)})


class MockServer(ThreadingHTTPServer):
    """Serves until it is closed. `requests` has what was posted; `left` counts clients that left before the end."""

    daemon_threads = True

    def __init__(self, page: bytes, port: int = 0, models=tuple(MODELS), key: str = "", pause: float = 0.01,
                 cut: Optional[int] = None):
        super().__init__(("127.0.0.1", port), Handler)
        self.page, self.models, self.key, self.pause = page, models, key, pause
        self.requests: list[tuple[str, dict]] = []
        self.failures: list[tuple] = []  # (status, message) for the next requests
        self.left = 0
        self.cut = cut  # a stream ends after so many events

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def __enter__(self) -> "MockServer":
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.shutdown()
        self.server_close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: mock_server.py PAGE PORT")
    MockServer(Path(sys.argv[1]).read_bytes(), int(sys.argv[2])).serve_forever()
