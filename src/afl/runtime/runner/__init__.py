"""The runner: a process that advances runs and serves facets, with signals and an HTTP status.

`python -m afl.runtime.runner --help` starts one from the command line.
"""

from afl.runtime.runner.registry import ToolRegistry
from afl.runtime.runner.service import RunnerConfig, RunnerService

__all__ = ["RunnerConfig", "RunnerService", "ToolRegistry"]
