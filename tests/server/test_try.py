"""Trying workflows out: stubs, made-up values, limits, and nothing of the user's that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from afl.app.compiling import compile_with_sources
from afl.app.errors import BadProgram
from afl.runtime.errors import BadInputs, UnknownFacet
from afl.server.models.system import SourceFile, TryForm, TryResult
from afl.server.program_views import try_process
from afl.server.program_views.compiling import compiled
from afl.server.program_views.made_up import MadeUp
from afl.server.program_views.try_process import Trial
from afl.server.trying import try_out

HEAD = """namespace t {
  enum Verdict { approve, change }
  schema Comment { text: String, line: Int?, replies: [Comment] }
  event facet Get(n: Long) => (r: Long)
  event facet Review(text: String) => (verdict: Verdict, comments: [Comment])
  prompt { template "{text}" }
  event facet Ask(what: String) => (ok: Boolean) with Human(group = "g", deadline = 2d)
"""


def _form(body: str, stubs: object = None, inputs: object = None) -> TryForm:
    form = {
        "files": [{"name": "t.afl", "text": f"{HEAD}{body}}}"}],
        "workflow": "t.W",
        "inputs": inputs or {},
        "stubs": stubs or {},
    }
    return TryForm.model_validate(form)


def _try(body: str, *, stubs: object = None, inputs: object = None) -> TryResult:
    return try_out(_form(body, stubs, inputs))


def _here(body: str, *, stubs: object = None, inputs: object = None) -> TryResult:
    """The same in this process, for flows that are harmless."""
    form = _form(body, stubs, inputs)
    trial = Trial(compiled(form.files), form.stubs)
    return TryResult.model_validate(trial.run(form.workflow, form.inputs))


def test_values_are_made_up_by_type() -> None:
    tried = _try(
        """workflow W() => (v: Verdict, c: [Comment], ok: Boolean) andThen {
             seen = Review(text = "x")
             sure = Ask(what = "y")
             later = afl.time.Sleep(duration = 3d) after sure
             told = afl.event.Wait(name = "go") after later
             yield W(v = seen.verdict, c = seen.comments, ok = sure.ok)
           }"""
    )
    assert tried.state == "completed", tried.error
    assert tried.outputs is not None
    assert tried.outputs["v"] == "approve"
    assert tried.outputs["ok"] is True
    states = {str(step["path"]): step["state"] for step in tried.steps}
    assert states == dict.fromkeys(("0/seen", "0/sure", "0/later", "0/told"), "done")


def test_stubs_answer_instead() -> None:
    body = """workflow W(n: Long) => (r: Long) andThen {
      a = Get(n = $.n)
      yield W(r = a.r)
    }"""
    assert _here(body, inputs={"n": 1}, stubs={"Get": {"r": 7}}).outputs == {"r": 7}
    with pytest.raises(BadInputs, match=r"t\.Get"):
        _here(body, inputs={"n": 1}, stubs={"t.Get": {"r": "x"}})
    with pytest.raises(BadInputs, match=r"Did you mean `t\.Get`"):
        _here(body, inputs={"n": 1}, stubs={"t.Gett": {}})
    with pytest.raises(BadInputs, match="n"):
        _here(body)


def test_a_run_that_fails() -> None:
    tried = _here(
        """workflow W() => (r: Long) andThen {
             a = Get(n = 1)
             sys.assert(a.r > 5)
             yield W(r = a.r)
           }"""
    )
    assert tried.state == "failed"
    assert tried.error is not None


def test_no_script_runs(tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    tried = _try(
        f"""event facet Run() => (r: Long)
             script python {{ open({str(witness)!r}, "w").close(); result["r"] = 9 }}
           workflow W() => (r: Long) andThen {{
             a = Run()
             yield W(r = a.r)
           }}"""
    )
    assert (tried.state, tried.outputs) == ("completed", {"r": 1})
    assert not witness.exists()


def test_what_takes_too_much_is_stopped() -> None:
    doubling = "\n".join(f"s{n} = Text(t = s{n - 1}.t ++ s{n - 1}.t)" for n in range(1, 60))
    tried = _try(
        f"""schema Text {{ t: String }}
           workflow W() => (r: String) andThen {{
             s0 = Text(t = "0123456789")
             {doubling}
             yield W(r = s59.t)
           }}"""
    )
    assert tried.state == "stopped"
    many = _try(
        """workflow W(xs: [Long]) => (r: [Long]) andThen foreach x in $.xs {
             a = Get(n = $.x)
             yield W(r = [a.r])
           }""",
        inputs={"xs": list(range(try_process.STEPS + 10))},
    )
    assert many.state == "stopped"
    assert many.error is not None


def test_what_is_no_workflow() -> None:
    with pytest.raises(UnknownFacet):
        _try("facet F()")
    with pytest.raises(BadProgram, match="do not compile"):
        _try("workflow W(")


@pytest.mark.parametrize("folder", ["review", "fanout", "pipelines"])
def test_examples(folder: str) -> None:
    example = compile_with_sources(Path(__file__).parents[2] / "examples" / folder)
    assert example.sources is not None
    files = [SourceFile(name=name, text=text) for name, text in example.sources.items()]
    workflow = next(each for each in example.program.facets if each.kind == "workflow")
    inputs = MadeUp(example.program).record(workflow.params)
    trial = Trial(compiled(files), {})
    tried = TryResult.model_validate(trial.run(workflow.name, inputs))
    assert tried.state in ("completed", "failed"), tried.error
    assert tried.steps
