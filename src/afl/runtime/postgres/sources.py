"""The files that programs were made of, and earlier deployments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from afl.kernel.postgres.rows import utc
from afl.runtime.deployments import DeployedVersion
from afl.runtime.postgres.core import PostgresCore

#: A text of PostgreSQL cannot have this character.
_NUL = "\0"


class PostgresSources(PostgresCore):
    """See `deployments.Sources` for what each method promises."""

    def save_sources(self, program: str, files: Mapping[str, str]) -> None:
        kept = {
            name: text.replace(_NUL, "\N{REPLACEMENT CHARACTER}") for name, text in files.items()
        }
        parameters = {"program": program, "names": list(kept), "texts": list(kept.values())}
        self._execute("save_sources", parameters)

    def get_sources(self, program: str) -> Mapping[str, str]:
        return dict(self._rows("get_sources", {"program": program}))

    def deployment_history(self, name: str, limit: int = 100) -> Sequence[DeployedVersion]:
        return [
            DeployedVersion(name, program, utc(deployed_at))
            for program, deployed_at in self._rows(
                "deployment_history", {"name": name, "limit": limit}
            )
        ]
