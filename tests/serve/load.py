#!/usr/bin/env python3
"""Measures a server that streams OpenAI's chat completions: tokens a second, and the time until the first token.

    tests/serve/load.py http://127.0.0.1:8080 MODEL CLIENTS REQUESTS

Each client sends one request after the other, for at most 48 tokens. A chunk of a stream counts as a token.
"""

import asyncio
import json
import sys
import time
import urllib.parse

SUBJECTS = "rain gold cats Rome tea music salt wind bread ships stars moss".split()


async def ask(server: str, model: str, number: int) -> tuple[float, int]:
    """Returns the seconds until the first token, and the number of tokens."""
    url = urllib.parse.urlparse(server)
    text = f"Tell me about {SUBJECTS[number % len(SUBJECTS)]} in a few sentences."
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 48,
                       "temperature": 0.8, "seed": number, "stream": True})
    begin, first, tokens = time.monotonic(), 0.0, 0
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write((f"POST /v1/chat/completions HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: close\r\n"
                  f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
    while line := await reader.readline():
        if not line.startswith(b"data: {"):
            continue
        choices = json.loads(line[6:]).get("choices")
        if choices and choices[0].get("delta", {}).get("content"):
            first = first or time.monotonic() - begin
            tokens += 1
    writer.close()
    return first, tokens


async def main(server: str, model: str, clients: str, requests: str) -> None:
    numbers, results = iter(range(int(requests))), []

    async def client() -> None:
        for number in numbers:
            results.append(await ask(server, model, number))

    begin = time.monotonic()
    await asyncio.gather(*(client() for _ in range(int(clients))))
    seconds = time.monotonic() - begin
    first = sorted(seconds for seconds, tokens in results if tokens)
    if not first:
        sys.exit("no request got a token")
    print(f"{clients} clients: {sum(tokens for _, tokens in results) / seconds:.1f} tokens/s, first token after "
          f"{first[len(first) // 2]:.3f} s (50th percentile) and {first[min(len(first) - 1, len(first) * 99 // 100)]:.3f} s "
          f"(99th), {len(first)} of {requests} answered in {seconds:.1f} s")


asyncio.run(main(*sys.argv[1:]))
