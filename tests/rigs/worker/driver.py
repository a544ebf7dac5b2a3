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
    kept = {name: getattr(random, name) for name in _RANDOM}
    urandom = os.urandom
    os.urandom = _refused
    for name in _RANDOM:
        setattr(random, name, _refused)
    try:
        importlib.import_module("entry")
    finally:
        os.urandom = urandom
        for name, function in kept.items():
            setattr(random, name, function)


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


types.SimpleNamespace(import_entry=import_entry, cold_start=cold_start, dispatch=dispatch, call=call)
