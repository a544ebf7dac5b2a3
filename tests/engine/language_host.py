"""Test equipment: a language host for Pulumi programs in Python.

The real one is a Go program that no module proxy serves. This one does what the engine asks of it to run a program:
it starts Pulumi's own ``pulumi-language-python-exec`` with the engine's addresses, and tells how that ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

_MESSAGE_BYTES = 400 * 1024 * 1024
_BAIL = 32
"""How the SDK's runner says that it has told the user itself what went wrong."""


class Host(language_pb2_grpc.LanguageRuntimeServicer):
    """Answers for one engine process."""

    def __init__(self, engine: str) -> None:
        self.engine = engine

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.engine = request.engine_address or self.engine
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version="0.0.0")

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.GetRequiredPackagesResponse()

    def GetProgramDependencies(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.GetProgramDependenciesResponse()

    def RuntimeOptionsPrompts(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.RuntimeOptionsResponse()

    def About(self, request: Any, context: Any) -> Any:  # noqa: N802
        return language_pb2.AboutResponse(executable=sys.executable, version=sys.version.split()[0])

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        return empty_pb2.Empty()

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Run the program and wait for its end."""
        runner = Path(os.environ["MEMPERSIST_ENGINE"]) / "pulumi-language-python-exec"
        arguments = {
            "monitor": request.monitor_address,
            "engine": self.engine,
            "project": request.project,
            "root_directory": request.info.root_directory,
            "stack": request.stack,
            "pwd": request.pwd,
            "dry_run": "true" if request.dryRun else "",
            "parallel": str(request.parallel),
            "organization": request.organization,
        }
        command = [sys.executable, "-u", str(runner)]
        for name, value in arguments.items():
            if value:
                command += [f"--{name}", value]
        program = request.info.entry_point or "."
        program_directory = request.info.program_directory or request.pwd
        command.append(str(Path(program_directory) / program))
        environment = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        code = subprocess.run(command, cwd=request.pwd, env=environment, check=False).returncode
        if code == _BAIL:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"the program ended with exit code {code}" if code else "")


def main() -> None:
    """Serve until the engine goes away."""
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    options = [("grpc.max_receive_message_length", _MESSAGE_BYTES), ("grpc.max_send_message_length", _MESSAGE_BYTES)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8), options=options)
    address = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(Host(address), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    stop.wait()
    server.stop(grace=None)


if __name__ == "__main__":
    main()
