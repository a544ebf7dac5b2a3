"""Runs inside the rig's Pyodide, before and beside the Worker: imports it under production's rules, hands it events,
and calls its adapters one by one for the contract suites."""

import base64
import importlib
import os
import pickle
import random
import sys
import types

sys.dont_write_bytecode = True
sys.path.insert(0, "/session/metadata")
sys.path.insert(1, "/session/metadata/python_modules")

_RANDOM = ["random", "getrandbits", "randrange", "randint", "choice", "choices", "shuffle", "sample", "uniform"]
_ISOLATE_MODULES = ("entry", "bindings")


def _refused(*_args, **_kwargs):
    raise OSError("randomness at import time is refused by the snapshot")


def import_entry():
    """Import the Worker as the upload does, where randomness is refused."""
    _under_the_rules(lambda: importlib.import_module("entry"))


def probe(line):
    """Run a line as if it stood at the top of a module of the Worker."""
    _under_the_rules(lambda: exec(line, {}))


def _under_the_rules(work):
    sources = [(os, "urandom"), (random, "_urandom"), *((random, name) for name in _RANDOM)]
    kept = [(owner, name, getattr(owner, name)) for owner, name in sources]
    seed = random.Random.seed
    for owner, name in sources:
        setattr(owner, name, _refused)
    random.Random.seed = lambda self, a=None, version=2: _refused() if a is None else seed(self, a, version)
    try:
        work()
    finally:
        random.Random.seed = seed
        for owner, name, function in kept:
            setattr(owner, name, function)


def cold_start():
    """What an isolate remembers is gone."""
    for name in [name for name in sys.modules if name.split(".")[0] in _ISOLATE_MODULES]:
        del sys.modules[name]
    import_entry()


async def dispatch(context, env, name, *args):
    from inspect import isawaitable

    from pyodide.code import relaxed_call
    from workers import python_from_rpc, python_to_rpc

    method = getattr(sys.modules["entry"].Default(context, env), name)
    given = [python_from_rpc(value) for value in args]
    result = relaxed_call(method, *given) if name == "fetch" else method(*given)
    return python_to_rpc(await result if isawaitable(result) else result)


class _Stream:
    def __init__(self, chunks, error):
        self.chunks, self.error = chunks, error

    async def __aiter__(self):
        for chunk in self.chunks:
            yield chunk
        if self.error is not None:
            raise self.error


def _port(env, kind, name, extra):
    from bindings.catalog import D1Catalog
    from bindings.embedder import WorkersAiEmbedder
    from bindings.mailer import WorkerMailer
    from bindings.objects import R2ObjectStore
    from bindings.queue import WorkerQueues
    from bindings.vectors import VectorizeIndex

    binding = getattr(env, name)
    if kind == "vectors":
        return VectorizeIndex(binding, extra["dimensions"], indexed=extra["indexed"])
    if kind == "queue":
        return WorkerQueues({"import": env.IMPORT_QUEUE, "index": env.INDEX_QUEUE})
    if kind == "mailer":
        return WorkerMailer(binding, extra["sender"])
    return {"catalog": D1Catalog, "objects": R2ObjectStore, "embedder": WorkersAiEmbedder}[kind](binding)


async def call(env, text):
    """A pickled call of a port's method, answered by its pickled result or exception."""
    kind, name, extra, method, args, kwargs = pickle.loads(base64.b64decode(text))
    args = [_Stream(*value[1:]) if isinstance(value, tuple) and value[:1] == ("$stream",) else value for value in args]
    try:
        outcome = (True, await getattr(_port(env, kind, name, extra), method)(*args, **kwargs))
    except Exception as error:
        outcome = (False, error)
    return base64.b64encode(pickle.dumps(outcome)).decode()


async def run(env, source, text):
    """Run ``main`` of some Python source in here, with pickled data or, for "env", the environment; its pickled
    result."""
    space = {"__name__": "run"}
    exec(compile(source, "<run>", "exec"), space)
    data = pickle.loads(base64.b64decode(text))
    return base64.b64encode(pickle.dumps(await space["main"](env if data == "env" else data))).decode()


types.SimpleNamespace(
    run=run, probe=probe, import_entry=import_entry, cold_start=cold_start, dispatch=dispatch, call=call
)
