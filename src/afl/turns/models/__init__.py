"""Models: one request, one answer, behind `ports.Model`.

`registry` finds a model by its name and is what others use; `fallback` asks one after another.
`scripted` has models that follow a script, for tests and documentation, and `script_files` reads
them. `pydantic_model` asks a model of a provider through pydantic-ai, and never more than once:
retries, loops and waiting are the turn's. `messages` says the same thing in both vocabularies,
`failures` sorts what went wrong into busy and refused, `anthropic_models` and `openai_models` make
the clients: these five need the extra `agents`, so the registry imports them when it has to.

The same request always makes the same bytes: providers keep what they have read of a prompt only as
long as it begins the same way.
May import: turns' `model`, `ports`, `errors`, `prices`.
"""
