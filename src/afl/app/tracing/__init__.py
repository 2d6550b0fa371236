"""Traces for those who use OpenTelemetry: one for each run. Needs the extra `otel`.

    run                    from its row, when it has ended
    └── step               from its row, when the run has ended
        ├── attempt        by the worker, while the handler works
        └── chat MODEL     by the worker, while the model is asked

The ids of runs and steps follow from the run and the path, so that every process knows them: a
worker that dies takes no trace along, and whoever ends a run can tell of all of its steps.
"""
