"""The deployment, part by part."""

import gc

gc.disable()  # the SDK is a hundred thousand small objects: looking for garbage while they are made costs a third of it
from mempersist_infra.program import run  # noqa: E402

gc.freeze()
gc.enable()

run()
