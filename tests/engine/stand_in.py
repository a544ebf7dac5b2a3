"""Test equipment: stands in for the bridged Cloudflare provider, under the unmodified SDK.

It makes the requests that the real plugin was seen to make, and shares its habits: it calls everything created that
was answered with 200, its refresh drops what is gone and is fooled by garbled answers, and some deletions send nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent import futures
from typing import Any

import grpc
import httpx
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from tests.engine.kinds import KINDS, Kind, Request, Values, camel

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
NIL = "{<nil>}"
"""What the real plugin keeps as the id of an object whose answer holds none."""
_SIGNATURE, _SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
_ATTEMPTS = 11
_MESSAGE_BYTES = 400 * 1024 * 1024
_HEADERS = {
    "user-agent": "terraform-provider-cloudflare/pulumi terraform-plugin-framework/1.17.0"
    " terraform/pulumi-terraform-bridge",
    "accept": "application/json",
}


class Refused(Exception):
    """The API refused a request, in the words that the real plugin shows."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """Answers one engine process."""

    def __init__(self) -> None:
        token = os.environ.get("CLOUDFLARE_API_TOKEN")
        headers = {**_HEADERS, **({"authorization": f"Bearer {token}"} if token else {})}
        base = os.environ.get("CLOUDFLARE_BASE_URL", "https://api.cloudflare.com/client/v4")
        self._http = httpx.Client(base_url=base, headers=headers, timeout=None)
        self._first_wait = float(os.environ.get("STAND_IN_FIRST_WAIT_SECONDS", "1.7"))

    def Handshake(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, accept_resources=False, accept_outputs=False)

    def Attach(self, request: Any, context: Any) -> Any:  # noqa: N802
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:  # noqa: N802
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version="6.23.1")

    def CheckConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        return provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True, acceptResources=False)

    def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        if _type_of(request.urn) not in KINDS:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"unknown resource token: {_type_of(request.urn)}")
        return provider_pb2.CheckResponse(inputs=request.news)

    def Diff(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = KINDS[_type_of(request.urn)]
        olds, news = _dict(request.old_inputs), _dict(request.news)
        changed = sorted(
            key
            for key in olds.keys() | news.keys()
            if key not in kind.swallowed
            and not key.startswith("__")
            and key not in request.ignoreChanges
            and olds.get(key) != news.get(key)
        )
        replaces = [key for key in changed if kind.update is None or key in kind.replaces]
        answer = provider_pb2.DiffResponse
        return answer(
            changes=answer.DIFF_SOME if changed else answer.DIFF_NONE,
            diffs=changed,
            replaces=replaces,
            hasDetailedDiff=True,
            detailedDiff={key: _change(key, olds, news, replaces) for key in changed},
        )

    def Create(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = KINDS[_type_of(request.urn)]
        inputs = _plain(_dict(request.properties))
        if request.preview:
            unknown = {_computed_name(name): UNKNOWN for name in kind.computed}
            return provider_pb2.CreateResponse(id="", properties=_struct({**_dict(request.properties), **unknown}))
        try:
            result = self._send(kind.create(inputs))
        except Refused as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        found = _id_of(kind, inputs, result)
        outputs = {**_dict(request.properties), **_outputs(kind, result)}
        return provider_pb2.CreateResponse(id=found, properties=_struct(outputs))

    def Read(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = KINDS[_type_of(request.urn)]
        olds, state = _dict(request.inputs), _dict(request.properties)
        if not olds:
            olds, request_id = _imported(kind, request.id, context)
        else:
            request_id = request.id
        if kind.read is None:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "Resource Import Not Implemented")
        try:
            result = self._send(kind.read(_plain(olds), request_id))  # type: ignore[misc]
        except Refused as error:
            if error.status == httpx.codes.NOT_FOUND:
                return provider_pb2.ReadResponse(id="")
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        if kind.id_field is not None and not (isinstance(result, dict) and result.get(kind.id_field)):
            return provider_pb2.ReadResponse(id=NIL, properties=_struct({}), inputs=_struct(olds))
        there = camel(result) if isinstance(result, dict) else {}
        if state:
            seen = {key: _overlaid(olds[key], there[key]) for key in kind.seen if key in olds and key in there}
        else:
            seen = {key: there[key] for key in {*kind.seen, *kind.replaces} if key in there}
        inputs = {**olds, **seen}
        return provider_pb2.ReadResponse(
            id=request_id,
            properties=_struct({**state, **inputs, **_outputs(kind, result, but=frozenset(kind.secret))}),
            inputs=_struct(inputs),
        )

    def Update(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = KINDS[_type_of(request.urn)]
        news, olds = _dict(request.news), _dict(request.olds)
        if not request.preview:
            if kind.update is None:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, "update is not supported")
            try:
                self._send(kind.update(_plain(news), _usable(kind, request.id, context)))  # type: ignore[misc]
            except Refused as error:
                context.abort(grpc.StatusCode.UNKNOWN, str(error))
        kept = {key: olds[key] for key in map(_computed_name, kind.computed) if key in olds}
        return provider_pb2.UpdateResponse(properties=_struct({**news, **kept}))

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        kind = KINDS[_type_of(request.urn)]
        if kind.delete is not None:
            inputs = _plain(_dict(request.old_inputs) or _dict(request.properties))
            try:
                self._send(kind.delete(inputs, _usable(kind, request.id, context)))
            except Refused as error:
                context.abort(grpc.StatusCode.UNKNOWN, str(error))
        return empty_pb2.Empty()

    def _send(self, request: Request) -> Any:
        """The ``result`` of an answer; None where there is none, whatever the answer was, if only it came with 200."""
        wait = self._first_wait
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                answer = self._http.request(
                    request.method,
                    request.path,
                    json=request.body,
                    headers={**request.headers, "x-stainless-retry-count": str(attempt - 1)},
                )
            except httpx.TransportError as error:
                if attempt == _ATTEMPTS:
                    raise Refused(0, f"failed to make http request: {request.method} {request.path}: {error}") from None
                time.sleep(wait)
                wait = min(30.0, wait * 2)
                continue
            if answer.is_success:
                return _result(answer)
            refused = answer.headers.get("x-should-retry") == "false"
            again = answer.status_code in {408, 409, 429} or answer.status_code >= 500
            if refused or not again or attempt == _ATTEMPTS:
                break
            told = answer.headers.get("retry-after", "")
            time.sleep(float(told) if told.isdecimal() else wait)
            wait = min(30.0, wait * 2)
        said = f"{answer.status_code} {answer.reason_phrase} {answer.text}"
        raise Refused(answer.status_code, f'failed to make http request: {request.method} "{answer.url}": {said}')


def _result(answer: httpx.Response) -> Any:
    try:
        envelope = answer.json()
    except ValueError:
        return None
    return envelope.get("result") if isinstance(envelope, dict) else None


def _type_of(urn: str) -> str:
    return urn.split("::")[2].rpartition("$")[2]


def _dict(struct: Any) -> dict[str, Any]:
    return json_format.MessageToDict(struct)


def _struct(values: Values) -> Any:
    struct = struct_pb2.Struct()
    struct.update({key: value for key, value in values.items() if value is not None})
    return struct


def _plain(value: Any) -> Any:
    """Without the wrapping of secrets, and with whole numbers as such."""
    if isinstance(value, dict):
        if value.get(_SIGNATURE) == _SECRET:
            return _plain(value.get("value"))
        return {key: _plain(item) for key, item in value.items() if not key.startswith("__")}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _id_of(kind: Kind, inputs: Values, result: Any) -> str:
    if kind.pulumi_id is not None:
        return str(inputs[kind.pulumi_id])
    found = result.get(kind.id_field) if isinstance(result, dict) else None
    return str(found) if found else NIL


def _usable(kind: Kind, entry_id: str, context: Any) -> str:
    if entry_id in {"", NIL} and kind.id_field is not None:
        context.abort(grpc.StatusCode.UNKNOWN, f"missing required {kind.id_field} parameter")
    return entry_id


def _computed_name(name: str) -> str:
    return camel({name: None}).popitem()[0]


def _outputs(kind: Kind, result: Any, but: frozenset[str] = frozenset()) -> dict[str, Any]:
    if not isinstance(result, dict):
        return {}
    found = {name: result[name] for name in kind.computed if name in result and name not in but and name != "id"}
    return {
        _computed_name(name): {_SIGNATURE: _SECRET, "value": value} if name in kind.secret else value
        for name, value in found.items()
    }


def _overlaid(old: Any, new: Any) -> Any:
    """What the API says now, of that which the inputs speak of."""
    if isinstance(old, dict) and isinstance(new, dict):
        if old.get(_SIGNATURE) == _SECRET:
            return old
        return {key: _overlaid(item, new[key]) if key in new else item for key, item in old.items()}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_overlaid(one, other) for one, other in zip(old, new, strict=True)]
    return new


def _change(key: str, olds: Values, news: Values, replaces: list[str]) -> Any:
    change = provider_pb2.PropertyDiff
    kind = "ADD" if key not in olds else "DELETE" if key not in news else "UPDATE"
    return change(kind=getattr(change, f"{kind}_REPLACE" if key in replaces else kind), inputDiff=True)


def _imported(kind: Kind, entry: str, context: Any) -> tuple[dict[str, Any], str]:
    """Inputs and id out of what `pulumi import` was told: the account, a slash, and the object's id."""
    account, _, rest = entry.partition("/")
    if not rest or kind.id_field is None:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"invalid ID: expected <account_id>/<id>, got {entry!r}")
    return {"accountId": account}, rest.partition("/")[0]


def main() -> None:
    """Serve until the engine goes away."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    options = [("grpc.max_receive_message_length", _MESSAGE_BYTES), ("grpc.max_send_message_length", _MESSAGE_BYTES)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), options=options)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(StandIn(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    stop.wait()
    server.stop(grace=None)


if __name__ == "__main__":
    main()
