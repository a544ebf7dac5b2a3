"""Build hook: makes the offline embedding model before the package is built, for wheels and editable installs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class EmbeddingModelHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the model where the package expects it, unless it is there already. Source archives go without."""
        del version, build_data
        if self.target_name != "wheel":
            return
        operations = str(Path(self.root, "operations"))
        sys.path.insert(0, operations)  # the package is not installed where it is being built
        try:
            from mempersist_ops.embedding import distill  # noqa: PLC0415 - found only now
        finally:
            sys.path.remove(operations)
        try:
            distill.build(say=self.app.display_info)
        except distill.SourceProblem as problem:
            self.app.abort(f"The embedding model cannot be built: {problem}")
