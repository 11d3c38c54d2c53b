"""The tiny models of the tests are real ones: llama.cpp loads them and they say what they were told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.models.tiny import CHATML, write_chat_model

PROMPT = "<|im_start|>user\nWhat is the sea? 🦙<|im_end|>\n<|im_start|>assistant\n"

# Native code runs in a child: it prints to the process's own descriptors, and an abort must not end the test run.
_GREEDY = """
import ctypes, json, sys
import llama_cpp as lc
silent = lc.llama_log_callback(lambda *_: None)
lc.llama_log_set(silent, None)
path, prompt, count = bytes.fromhex(sys.argv[1]), bytes.fromhex(sys.argv[2]), int(sys.argv[3])
model = lc.llama_model_load_from_file(path, lc.llama_model_default_params())
assert model, "did not load"
params = lc.llama_context_default_params()
params.n_ctx, params.n_batch, params.n_threads = 512, 512, 1
context = lc.llama_init_from_model(model, params)
assert context, "no context"
vocab = lc.llama_model_get_vocab(model)
tokens = (lc.llama_token * 512)()
used = lc.llama_tokenize(vocab, prompt, len(prompt), tokens, 512, False, True)
sampler = lc.llama_sampler_init_greedy()
ids, text = list(tokens[:used]), b""
piece = ctypes.create_string_buffer(256)
answer = []
batch = lc.llama_batch_get_one(tokens, used)
for _ in range(count):
    assert lc.llama_decode(context, batch) == 0
    token = lc.llama_sampler_sample(sampler, context, -1)
    answer.append(token)
    if lc.llama_vocab_is_eog(vocab, token):
        break
    length = lc.llama_token_to_piece(vocab, token, piece, 256, 0, False)
    text += piece.raw[:length]
    tokens[0] = token
    batch = lc.llama_batch_get_one(tokens, 1)
template = lc.llama_model_chat_template(model, None)
print(json.dumps({"prompt": ids, "answer": answer, "text": text.hex(), "template": (template or b"").decode(),
                  "bos": bool(lc.llama_vocab_get_add_bos(vocab))}))
"""


def greedy(path: Path, prompt: str, count: int = 40) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, "-P", "-c", _GREEDY, os.fsencode(path).hex(), prompt.encode().hex(), str(count)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout.splitlines()[-1])
    assert isinstance(result, dict)
    return result


def test_a_random_model_reads_any_text_and_writes_printable_text_for_ever(tmp_path: Path) -> None:
    path = write_chat_model(tmp_path / "m.gguf")
    first = greedy(path, PROMPT)
    assert len(first["answer"]) == 40
    text = bytes.fromhex(first["text"])
    assert all(0x20 <= byte < 0x7F for byte in text)
    assert len(set(first["answer"])) > 10  # it does not fall into one token
    assert greedy(path, PROMPT)["answer"] == first["answer"]
    assert greedy(path, "x" + PROMPT)["answer"] != first["answer"]  # the whole context matters, not the last token only


def test_a_scripted_model_says_its_script_and_ends(tmp_path: Path) -> None:
    says: list[str | bytes] = ["RST", "U", b"\xf0\x9f", b"\xa6", b"\x99", " the", "</thi", "nk>", "\n\n"]
    path = write_chat_model(tmp_path / "m.gguf", says=says, template=None)
    result = greedy(path, PROMPT)
    assert bytes.fromhex(result["text"]) == b"RSTU\xf0\x9f\xa6\x99 the</think>\n\n"
    assert len(result["answer"]) == len(says) + 1
    assert result["answer"][-1] == 3  # <|im_end|>
    assert result["template"] == ""


def test_a_scripted_model_can_go_on_for_ever(tmp_path: Path) -> None:
    path = write_chat_model(tmp_path / "m.gguf", says=["tick ", "tock "], ends=False, add_bos=True)
    result = greedy(path, PROMPT, 6)
    assert bytes.fromhex(result["text"]) == b"tick tock " * 3
    assert result["bos"] is True


def test_control_tokens_are_single_tokens_and_the_template_arrives(tmp_path: Path) -> None:
    path = write_chat_model(tmp_path / "m.gguf", control=("<think>",), says=["<think>", "a"], eos="</s>")
    result = greedy(path, "<think></s><|im_start|>", 3)
    assert result["prompt"] == [4, 1, 2]
    assert result["template"] == CHATML
    assert result["answer"][1:] == [result["answer"][1], 1]


def test_a_split_model_loads_from_its_first_shard(tmp_path: Path) -> None:
    whole = write_chat_model(tmp_path / "whole.gguf")
    first = write_chat_model(tmp_path / "m.gguf", tensors_per_shard=8)
    assert sorted(path.name for path in tmp_path.glob("m-*")) == [f"m-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    assert greedy(first, PROMPT)["answer"] == greedy(whole, PROMPT)["answer"]
