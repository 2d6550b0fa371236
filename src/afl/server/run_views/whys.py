"""Why something is where it is, as the API tells it."""

from __future__ import annotations

from collections.abc import Sequence

from afl.runtime import reasons
from afl.server.models.runs import Answer, WhyView


def why_view(why: reasons.Why) -> WhyView:
    """All answers about a run or a step."""
    return of_answers(why.run, why.step, why.state, why.answers, more=why.is_cut)


def of_answers(
    run: str,
    step: str | None,
    state: str,
    answers: Sequence[reasons.Answer],
    *,
    more: bool = False,
) -> WhyView:
    """Answers, the first of which is the one to read."""
    return WhyView(
        run=run,
        step=step,
        state=state,
        sentence=answers[0].sentence,
        answers=[
            Answer(
                code=answer.code.value,
                sentence=answer.sentence,
                step=answer.step,
                command=answer.command,
                since=answer.since,
                until=answer.until,
                detail=dict(answer.detail),
            )
            for answer in answers
        ],
        more=more,
    )
