"""The names under which the service answers, and the way through the zone's firewall for those who call it."""

from __future__ import annotations

from typing import Final

import pulumi
import pulumi_cloudflare as cloudflare

from mempersist_infra.context import Component, Context
from mempersist_infra.settings import Host

OPEN_PATHS: Final = ("/mcp", "/authorize", "/token", "/register")
OPEN_BELOW: Final = ("/mcp/", "/oauth/", "/.well-known/")
_SKIPPED_PHASES: Final = ("http_ratelimit", "http_request_firewall_managed", "http_request_sbfm")
_SKIPPED_PRODUCTS: Final = ("bic", "hot", "securityLevel", "uaBlock")


class Domains(Component):
    """Without hosts of its own the service answers below workers.dev, and there is nothing to let through."""

    def __init__(self, context: Context, worker: pulumi.Resource, deployed: pulumi.Resource) -> None:
        super().__init__("Domains", context)
        context, settings = context.within(self), context.settings
        cloudflare.WorkersScriptSubdomain(
            "workers-dev",
            account_id=context.account,
            script_name=context.names.worker,
            enabled=settings.workers_subdomain is not None and not settings.hosts,
            previews_enabled=False,
            opts=context.options(after=(worker, deployed)),
        )
        for place, host in zip(("primary", "legacy"), settings.hosts, strict=False):
            cloudflare.WorkersCustomDomain(
                f"{place}-domain",
                account_id=context.account,
                hostname=host.name,
                service=context.names.worker,
                zone_id=host.zone_id,
                # Its replacement writes the same name first and deletes the old entry then, which can be the new one.
                opts=context.options(after=(worker, deployed), delete_first=True),
            )
        if settings.waf_skip:
            for zone_id, hosts in _by_zone(settings.hosts).items():
                _let_through(context, zone_id, hosts)


def public_url(context: Context) -> str:
    """Scheme and host that clients use."""
    if context.settings.hosts:
        return f"https://{context.settings.hosts[0].name}"
    return f"https://{context.names.worker}.{context.settings.workers_subdomain}.workers.dev"


def skip_expression(hosts: tuple[str, ...]) -> str:
    """Requests that carry a token or get one, in the words of Cloudflare's rules.

    The servers of Claude and ChatGPT call these, and are no browsers: a challenge there ends the connection in silence.
    """
    named = " ".join(f'"{host}"' for host in hosts)
    paths = " ".join(f'"{path}"' for path in OPEN_PATHS)
    below = " or ".join(f'starts_with(http.request.uri.path, "{path}")' for path in OPEN_BELOW)
    return f"(http.host in {{{named}}} and (http.request.uri.path in {{{paths}}} or {below}))"


def _let_through(context: Context, zone_id: str, hosts: tuple[str, ...]) -> None:
    cloudflare.Ruleset(
        f"let-through-{zone_id[:8]}",
        zone_id=zone_id,
        kind="zone",
        name=f"{context.names.base}: MCP clients",
        description="Lets MCP clients reach the endpoints that check their tokens themselves.",
        phase="http_request_firewall_custom",
        rules=[
            {
                "ref": "mempersist_mcp_clients",
                "description": "MCP and OAuth endpoints of mempersist",
                "enabled": True,
                "expression": skip_expression(hosts),
                "action": "skip",
                "action_parameters": {"phases": list(_SKIPPED_PHASES), "products": list(_SKIPPED_PRODUCTS)},
                "logging": {"enabled": True},
            }
        ],
        opts=context.options(),
    )


def _by_zone(hosts: tuple[Host, ...]) -> dict[str, tuple[str, ...]]:
    zones: dict[str, tuple[str, ...]] = {}
    for host in hosts:
        zones[host.zone_id] = (*zones.get(host.zone_id, ()), host.name)
    return zones
