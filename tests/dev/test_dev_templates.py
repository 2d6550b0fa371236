"""What `afl init` writes, `afl dev` runs."""

from __future__ import annotations

import pytest

from tests.dev.projects import dev, eventually, project


@pytest.mark.parametrize("template", ["agent", "approval", "pipeline"])
def test_a_template_comes_as_far_as_it_can(template: str) -> None:
    with project(template) as folder, dev(folder) as running:
        assert running.started["served"]["offer"]["unserved"] == []
        (run,) = running.runs()
        assert run["key"] == "demo"
        if template == "approval":
            (item,) = eventually(lambda: running.get("/inbox")["items"])
            running.post(f"/inbox/{item['task']}", {"values": {"answer": "yes"}})
            assert running.outputs(run["id"])["answer"] == "yes"
        else:
            running.outputs(run["id"])
