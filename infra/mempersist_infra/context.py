"""What every component is given."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pulumi

from mempersist_infra.names import Names
from mempersist_infra.settings import Settings


@dataclass(frozen=True, slots=True)
class Context:
    """The deployment's settings and names, and the component that a resource belongs to."""

    settings: Settings
    names: Names
    parent: pulumi.Resource | None = None

    @property
    def account(self) -> str:
        return self.settings.account_id

    def within(self, parent: pulumi.Resource) -> Context:
        return replace(self, parent=parent)

    def options(
        self,
        *,
        after: tuple[pulumi.Resource, ...] = (),
        ignore: tuple[str, ...] = (),
        delete_first: bool = False,
        keeps_data: bool = False,
    ) -> pulumi.ResourceOptions:
        """Options of a resource.

        :param after: what must be there before it, and goes after it when all is destroyed.
        :param ignore: what is set once and never changed.
        :param delete_first: replaced by deleting and making anew, so that a refused deletion makes nothing.
        :param keeps_data: protected as the settings say, and never replaced by making first.
        """
        return pulumi.ResourceOptions(
            parent=self.parent,
            depends_on=list(after),
            ignore_changes=list(ignore),
            delete_before_replace=delete_first or keeps_data or None,
            protect=(self.settings.protect or None) if keeps_data else None,
        )


class Component(pulumi.ComponentResource):
    """A part of the deployment, which groups its resources under one name."""

    def __init__(self, kind: str, context: Context) -> None:
        super().__init__(f"mempersist:index:{kind}", kind.lower(), None, pulumi.ResourceOptions(parent=context.parent))
