"""The peers in a process of their own, as homeai's engine is: one JSON request a line in, one JSON result a line out.

`bare`: the loop of `bare.py` on token ids. `llama`: `Llama.create_chat_completion(stream=True)` on messages.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def serve_bare(path: str, context: int, threads: int) -> None:
    from tests.benchmarks.bare import BareLoop

    loop = BareLoop(path, context=context, threads=threads)
    _say({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        times = loop.run(loop.tokenise(request["text"]), request["tokens"])
        prompt = len(loop.tokenise(request["text"]))
        _say(
            {
                "prompt": prompt,
                "tokens": len(times.ids),
                "prefill_tps": prompt / times.prefill_s,
                "decode_tps": times.decode_tps,
            }
        )


def serve_llama(path: str, context: int, threads: int) -> None:
    from llama_cpp import Llama

    # Flash attention on, as the engine's own choice is on this build; the class would force it off.
    llama: Any = Llama(
        path, n_ctx=context, n_threads=threads, n_threads_batch=threads, n_batch=512, flash_attn=True, verbose=False
    )
    _say({"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        llama.reset()
        began = time.perf_counter()
        stream = llama.create_chat_completion(
            messages=request["messages"], max_tokens=request["tokens"], temperature=0.0, repeat_penalty=1.0, stream=True
        )
        stamps = [time.perf_counter() for chunk in stream if chunk["choices"][0]["delta"].get("content")]
        _say(
            {
                "tokens": len(stamps),
                "ttft_ms": (stamps[0] - began) * 1e3,
                "decode_tps": (len(stamps) - 1) / (stamps[-1] - stamps[0]),
            }
        )


def _say(result: dict[str, Any]) -> None:
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    {"bare": serve_bare, "llama": serve_llama}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
