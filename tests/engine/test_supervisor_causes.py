"""The sentence for a dead worker: its cause, and something to do."""

from __future__ import annotations

import pytest

from homeai.engine.causes import EXIT_FAILED, explain, explain_import

CUDA_TAIL = "ggml_cuda_init: found 1 CUDA devices\nCUDA error: out of memory\nFatal Python error: Aborted"


@pytest.mark.parametrize(
    ("status", "tail", "code", "words", "help_words"),
    [
        (-4, "", "engine_died", "processor instruction", "GGML_NATIVE=OFF"),
        (0xC000001D, "", "engine_died", "processor instruction", "GGML_NATIVE=OFF"),
        (-6, CUDA_TAIL, "engine_died", "GPU's memory is full", "--gpu-layers"),
        (-6, "ggml_vulkan: Device memory allocation failed: ErrorOutOfDeviceMemory", "engine_died", "GPU's", "--cpu"),
        (-6, "terminate called after throwing 'std::bad_alloc'", "engine_died", "because memory ran out", "smaller"),
        (
            -6,
            "CUDA error: an illegal memory access",
            "engine_died",
            "error of the GPU: CUDA error: an illegal",
            "--cpu",
        ),
        (-6, "x.c:1: GGML_ASSERT(n > 0) failed", "engine_died", "GGML_ASSERT(n > 0) failed", "log"),
        (-6, "", "engine_died", "check of its own (signal 6, SIGABRT)", "log"),
        (-7, "", "engine_died", "model file", "disk"),
        (-9, "", "engine_died", "memory ran out (signal 9, SIGKILL)", "smaller model"),
        (-11, "", "engine_died", "touched memory", "--cpu"),
        (0xC0000005, "", "engine_died", "0xC0000005", "--cpu"),
        (-15, "", "engine_died", "ended by another program", "Ask again"),
        (-31, "", "engine_died", "signal 31", "log"),
        (0, "", "engine_died", "by itself", "log"),
        (3, "", "engine_died", "exit code 3.", "log"),
        (3, "something odd.\n", "engine_died", "exit code 3: something odd.", "log"),
        (EXIT_FAILED, "Traceback\n  File x\nValueError: bad", "engine_died", "failed: ValueError: bad.", "log"),
        (1, "MemoryError", "engine_died", "memory ran out", "smaller"),
        (127, "python: error while loading shared libraries: libc.so.9", "engine_import", "libc.so.9", "README"),
        (0xC0000135, "", "engine_import", "shared library is missing.", "README"),
    ],
)
def test_every_end_has_its_cause_and_a_help(status: int, tail: str, code: str, words: str, help_words: str) -> None:
    fault = explain(status, tail)
    assert fault.code == code
    assert words in fault.message
    assert help_words in fault.help
    assert "\n" not in fault.message


@pytest.mark.parametrize(
    ("free_share", "words", "not_said", "help_words"),
    [
        (None, "perhaps by the system", "most likely", "smaller model"),
        (0.02, "most likely by the system because memory ran out", "perhaps", "smaller model"),
        (0.6, "memory was not short: 60 % free", "ran out", "starts it again"),
    ],
)
def test_a_kill_is_put_down_to_memory_only_where_it_was_short(
    free_share: float | None, words: str, not_said: str, help_words: str
) -> None:
    fault = explain(-9, "", free_share)
    assert words in fault.message
    assert not_said not in fault.message
    assert help_words in fault.help
    assert "The next question starts it again." in fault.help


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (ModuleNotFoundError("No module named 'llama_cpp'", name="llama_cpp"), "package llama_cpp is not installed"),
        (OSError("libcudart.so.12: cannot open shared object file"), "libcudart.so.12"),
        (RuntimeError("Failed to load shared library 'libllama.so': libcublas.so"), "a shared library did not load"),
        (AttributeError("undefined symbol: llama_new"), "do not match"),
        (ValueError("odd"), "ValueError: odd"),
    ],
)
def test_a_failed_import_says_what_is_missing(problem: Exception, words: str) -> None:
    fault = explain_import(problem, "homeai.engine.llamacpp")
    assert fault.code == "engine_import"
    assert words in fault.message
    assert fault.help
