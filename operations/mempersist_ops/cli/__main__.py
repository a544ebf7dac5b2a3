"""``python -m mempersist_ops.cli`` is ``mempersist``."""

from mempersist_ops.cli.main import main

main()
