"""Progress says how much is done, how fast, and how long the rest takes."""

from __future__ import annotations

import io

from mempersist_ops.cli.progress import Progress, amount, describe, duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_says_share_rate_and_time_left() -> None:
    line = describe(50_000_000, 200_000_000, "bytes", since=50_000_000, seconds=10)
    assert line == "50.0 MB of 200.0 MB (25 %), 5.0 MB/s, 30 s left"


def test_what_a_resumed_run_found_done_does_not_count_as_its_speed() -> None:
    line = describe(150, 200, "objects", since=50, seconds=10)
    assert line == "150 of 200 objects (75 %), 5 objects/s, 10 s left"


def test_nothing_done_yet_has_no_rate_and_nothing_to_do_has_no_share() -> None:
    assert describe(0, 10, "objects", since=0, seconds=1) == "0 of 10 objects (0 %)"
    assert describe(0, 0, "objects", since=0, seconds=1) == "0 of 0 objects"


def test_times_and_sizes_are_readable() -> None:
    assert [duration(59.6), duration(61), duration(3725)] == ["1 min 00 s", "1 min 01 s", "1 h 02 min"]
    assert [amount(999, "bytes"), amount(1000, "bytes"), amount(3.2e12, "bytes")] == ["999 B", "1.0 kB", "3.2 TB"]
    assert amount(0.4, "objects") == "0.4 objects"


def test_a_log_file_gets_a_plain_line_every_five_seconds_and_no_control_characters() -> None:
    stream, now = io.StringIO(), [0.0]
    progress = Progress("hashing", "bytes", stream=stream, clock=lambda: now[0])
    for second in range(12):
        now[0] = float(second)
        progress.at(second * 1000, 12_000)
    progress.close()
    assert stream.getvalue().splitlines() == [
        "hashing: 5.0 kB of 12.0 kB (41 %), 1.0 kB/s, 7 s left",
        "hashing: 10.0 kB of 12.0 kB (83 %), 1.0 kB/s, 2 s left",
    ]


def test_a_terminal_line_rewrites_itself_and_is_gone_at_the_end() -> None:
    stream, now = Terminal(), [0.0]
    progress = Progress("copying", "objects", stream=stream, clock=lambda: now[0])
    progress.at(0, 4)
    now[0] = 1.0
    progress.at(2, 4)
    progress.close()
    assert stream.getvalue().split("\r\x1b[K") == [
        "",
        "copying: 0 of 4 objects (0 %)",
        "copying: 2 of 4 objects (50 %), 2 objects/s, 1 s left",
        "",
    ]
