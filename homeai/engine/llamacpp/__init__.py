"""The llama.cpp backend: an instrumented loop on the library's low-level API.

`library`, `native`, `sampling` own what is C; `loading` and `placement` bring a model in and tell where it went;
`template`, `prompt`, `prompting` make tokens of messages; `utf8`, `reasoning`, `stops`, `stream` make text of tokens;
`answer`, `cache`, `plan`, `scheduler` are the loop. Only the worker program imports this package.
"""

from __future__ import annotations

from homeai.engine.backend import Backend, Emit


def create(emit: Emit) -> Backend:
    """Load the library and return the backend; raises `ImportError` or `OSError` where it cannot run."""
    from homeai.engine.llamacpp.engine import LlamaCppBackend

    return LlamaCppBackend(emit)
