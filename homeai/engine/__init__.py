"""The engine: a worker process that runs the model, and its supervisor.

`wire` is the codec of both ends, `worker` the program inside the child, `supervisor` its keeper in our process,
`backend` what a backend must offer. `llamacpp/` is imported by the worker program only.
"""
