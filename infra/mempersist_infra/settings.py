"""What the operator sets, checked whole before anything else happens. `Pulumi.example.yaml` explains each key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mempersist_infra import values
from mempersist_infra.values import Reader

NAMESPACE: Final = "mempersist"
KEYS: Final = (
    "accountId",
    "accountName",
    "hostname",
    "zoneId",
    "legacyHostname",
    "legacyZoneId",
    "workersSubdomain",
    "location",
    "jurisdiction",
    "readReplication",
    "generations",
    "activeGeneration",
    "ownerAddress",
    "signUp",
    "allowedOrigins",
    "alertAddress",
    "mailFrom",
    "mailZoneId",
    "wafSkip",
    "jobsToken",
    "protect",
    "keepArchive",
)
LOCATIONS: Final = ("weur", "eeur", "apac", "wnam", "enam", "oc")
JURISDICTIONS: Final = ("default", "eu", "fedramp")
_MOST_GENERATIONS: Final = 2


@dataclass(frozen=True, slots=True)
class Host:
    """A name under which the service answers. ``zone_id`` is that of the zone in which the name lies."""

    name: str
    zone_id: str


@dataclass(frozen=True, slots=True)
class Mail:
    """``sender`` is the address of the service's mail; ``zone_id`` the zone whose sending domain is to be set up."""

    sender: str
    zone_id: str | None


@dataclass(frozen=True, slots=True)
class Settings:
    """A deployment as its operator wants it.

    ``hosts`` has the primary one first and may be empty: the service then answers below ``workers_subdomain``, the
    account's own name under workers.dev. ``generations`` are those whose vector indexes exist.
    """

    account_id: str
    account_name: str
    hosts: tuple[Host, ...]
    workers_subdomain: str | None
    location: str | None
    jurisdiction: str
    read_replication: str
    generations: tuple[str, ...]
    active_generation: str
    owner_address: str | None
    sign_up: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    alert_address: str | None
    mail: Mail | None
    waf_skip: bool
    jobs_token: bool
    protect: bool
    keep_archive: bool


def load(given: Mapping[str, Any]) -> Settings:
    """The settings in ``given``, whose keys have no namespace and whose values are text or what JSON makes of it.

    :raises ~mempersist_infra.values.SettingsError: with a line for everything that is wrong.
    """
    read = Reader(NAMESPACE, KEYS, given)
    generations = read.words("generations", values.generation) or ("g1",)
    settings = Settings(
        account_id=read.required("accountId", values.hex32),
        account_name=read.required("accountName", values.line),
        hosts=_hosts(read),
        workers_subdomain=read.optional("workersSubdomain", values.label),
        location=read.choice("location", LOCATIONS, None),
        jurisdiction=read.choice("jurisdiction", JURISDICTIONS, "default") or "default",
        read_replication=read.choice("readReplication", ("auto", "disabled"), "disabled") or "disabled",
        generations=generations,
        active_generation=read.choice("activeGeneration", generations, generations[0]) or generations[0],
        owner_address=read.optional("ownerAddress", values.address),
        sign_up=read.words("signUp", values.address_or_domain),
        allowed_origins=read.words("allowedOrigins", values.origin),
        alert_address=read.optional("alertAddress", values.address),
        mail=_mail(read),
        waf_skip=read.flag("wafSkip", default=True),
        jobs_token=read.flag("jobsToken", default=True),
        protect=read.flag("protect", default=True),
        keep_archive=read.flag("keepArchive", default=True),
    )
    _check_together(read, settings)
    read.finish()
    return settings


def _hosts(read: Reader) -> tuple[Host, ...]:
    hosts = []
    for name_key, zone_key in (("hostname", "zoneId"), ("legacyHostname", "legacyZoneId")):
        name, zone = read.optional(name_key, values.hostname), read.optional(zone_key, values.hex32)
        if (name is None) != (zone is None) and not {name_key, zone_key} & read.faulty:
            there, gone = (zone_key, name_key) if name is None else (name_key, zone_key)
            read.wrong(gone, f"is missing beside {there}; set both or neither")
        if name is not None and zone is not None:
            hosts.append(Host(name, zone))
    return tuple(hosts)


def _mail(read: Reader) -> Mail | None:
    sender, zone = read.optional("mailFrom", values.address), read.optional("mailZoneId", values.hex32)
    if sender is None and zone is not None and "mailFrom" not in read.faulty:
        read.wrong("mailFrom", "is missing beside mailZoneId; set the address that mail is sent from")
    return None if sender is None else Mail(sender, zone)


def _check_together(read: Reader, settings: Settings) -> None:
    """What is wrong between settings, each of which is well-formed."""
    if not settings.hosts and settings.workers_subdomain is None and not {"hostname", "zoneId"} & read.faulty:
        read.wrong(
            "hostname",
            "is missing, and so is workersSubdomain; set hostname and zoneId for a name of your own, or"
            " workersSubdomain to the account's name under workers.dev",
        )
    names = [host.name for host in settings.hosts]
    if len(set(names)) < len(names):
        read.wrong("legacyHostname", "is the same as hostname; leave it out, or name the older host")
    if "legacyHostname" in read.given and "hostname" not in read.given:
        read.wrong("hostname", "is missing beside legacyHostname; name the host that clients are to use")
    if len(settings.generations) > _MOST_GENERATIONS or len(set(settings.generations)) < len(settings.generations):
        read.wrong("generations", "must name one index, or two while one takes the other's place, apart by blanks")
    if settings.mail is None and (settings.sign_up or settings.alert_address):
        key = "signUp" if settings.sign_up else "alertAddress"
        read.wrong(key, "needs mailFrom: without a sender no mail goes out")
