"""Migration directories and a clock for tests of migrations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FIRST = "CREATE TABLE one (a TEXT PRIMARY KEY) STRICT;\nINSERT INTO one VALUES ('first');\n"
SECOND = """
CREATE TABLE two (b TEXT REFERENCES one (a)) STRICT; -- refers; to one
CREATE TRIGGER two_in AFTER INSERT ON two BEGIN
  UPDATE one SET a = a WHERE a = new.b;
  DELETE FROM one WHERE a = ';';
END;
"""


@dataclass
class StoppedClock:
    """Shows the time it was set to."""

    now: int = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.now


def write(directory: Path, **files: str) -> Path:
    """A migration directory; ``m0001_one=...`` becomes ``0001_one.sql``."""
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / f"{name[1:]}.sql").write_text(text)
    return directory
