"""Models on this disk: finding GGUF files, reading their headers, and saying which can chat and why others cannot.

`gguf` reads a header, `judge` says what a file is, `modelfile` looks at one model with all its shards, `library` finds
them all, `choose` finds the one that is meant. Nothing here reads weights or needs the engine.
"""
