"""What turns cost to keep: `python -m bench.turn`.

How much a turn of a hundred requests with a context of 200,000 tokens stores, by what there is to
be stored; whether one of its requests comes out of its cards as it was sent, to the byte; and what
a claim and an answer cost among 100,000 suspended turns, by what they cost among 100.
"""

from __future__ import annotations

import json
import os

from bench import turn_storage, turn_suspended
from bench.server import parser
from bench.turn_storage import Storage
from bench.turn_suspended import Series

_MEGABYTE = 1_000_000


def report(storage: Storage, series: Series, plan: turn_suspended.Plan) -> str:
    """Two tables, and the figures as one JSON object in the last line."""
    rows = [
        f"{storage.requests} requests sent {storage.sent / _MEGABYTE:.1f} MB, of which "
        f"{storage.unique / _MEGABYTE:.3f} MB are unique; stored are",
        *(
            f"{words:<44}{stored / _MEGABYTE:>8.3f} MB{stored / storage.unique:>8.3f}"
            for words, stored in (
                ("  cards and boxes, live rows", storage.stored.transcript),
                ("  all tables, live rows", storage.stored.rows),
                ("  all tables with indexes, after a vacuum", storage.stored.files),
            )
        ),
        f"{'  in the outbox, until it was published':<44}{storage.relayed / _MEGABYTE:>8.3f} MB"
        f"{storage.relayed / storage.unique:>8.3f}",
        f"request {storage.again}, made again from its cards, is "
        f"{'the same to the byte' if storage.is_same else 'NOT the same'}",
        "",
        f"{'suspended':>10}{'claim ms':>10}{'reply ms':>10}",
    ]
    for count, costs in ((plan.few, series.few), (plan.many, series.many)):
        rows.append(f"{count:>10}{costs.claim:>10.3f}{costs.reply:>10.3f}")
    rows.append(f"{'ratio':>10}{series.claim_ratio:>10.3f}{series.reply_ratio:>10.3f}")
    figures = {
        "bytes_ratio": round(storage.ratio, 3),
        "suspended_flatness": round(series.flatness, 3),
        "request_is_same": storage.is_same,
        "requests": storage.requests,
        "sent_bytes": storage.sent,
        "unique_bytes": storage.unique,
        "transcript_bytes": storage.stored.transcript,
        "all_rows_bytes": storage.stored.rows,
        "all_files_bytes": storage.stored.files,
        "relayed_bytes": storage.relayed,
        "transcript_ratio": round(storage.transcript_ratio, 3),
        "all_files_ratio": round(storage.stored.files / storage.unique, 3),
        "suspended": plan.many,
        "claim_ratio": round(series.claim_ratio, 3),
        "reply_ratio": round(series.reply_ratio, 3),
        "claim_p50_ms": round(series.many.claim, 3),
        "reply_p50_ms": round(series.many.reply, 3),
        "load": round(os.getloadavg()[0], 1),
    }
    return "\n".join([*rows, json.dumps(figures)])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--requests", type=int, default=100, help="to the model (100)")
    options.add_argument("--tokens", type=int, default=200_000, help="of context (200000)")
    options.add_argument("--suspended", type=int, default=100_000, help="turns (100000)")
    options.add_argument("--rounds", type=int, default=120, help="of five turns each (120)")
    chosen = options.parse_args()
    again = min(57, chosen.requests - 1)
    storage = turn_storage.measure(
        chosen.server, turn_storage.Plan(chosen.requests, chosen.tokens, again)
    )
    plan = turn_suspended.Plan(many=chosen.suspended, rounds=chosen.rounds)
    print(report(storage, turn_suspended.measure(chosen.server, plan), plan))


if __name__ == "__main__":
    main()
