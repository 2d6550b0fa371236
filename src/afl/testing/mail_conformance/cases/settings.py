"""Settings that all processes share."""

from __future__ import annotations

from typing import Any

import pytest

from afl.messaging.errors import MessageCoordinatorError
from afl.messaging.models import CoordinatorConfig
from afl.testing.mail_conformance.cases.base import Cases
from afl.testing.mail_conformance.driver import Driver, message


class SettingCases(Cases):
    def test_the_defaults_are_those_of_the_specification(self, driver: Driver) -> None:
        config = driver.harness.run(driver.coordinator.config())
        assert config.model_copy(update={"version": 0}) == CoordinatorConfig()

    def test_only_what_is_named_changes(self, driver: Driver) -> None:
        before = driver.harness.run(driver.coordinator.config())
        driver.configure(queue_size=7, backoff_max=2.5)
        driver.configure(retry_attempts=1, fairness="weighted")
        after = driver.harness.run(driver.coordinator.config())
        assert after.model_copy(update={"version": 0}) == CoordinatorConfig(
            queue_size=7, backoff_max=2.5, retry_attempts=1, fairness="weighted"
        )
        assert after.version > before.version

    def test_other_processes_obey_at_once(self, driver: Driver) -> None:
        other = driver.another()
        other.send()
        driver.configure(queue_size=1)
        assert not other.deliver(message()).delivered
        assert other.harness.run(other.coordinator.config()).queue_size == 1
        driver.configure(retry_attempts=0)
        assert other.nack(other.take().token)
        assert other.counts().dead == 1

    @pytest.mark.parametrize(
        "settings",
        [
            {"queue_size": 0},
            {"retry_attempts": -1},
            {"backoff_base": 0.0},
            {"backoff_factor": 0.5},
            {"backoff_max": float("nan")},
            {"fairness": "random"},
            {"dedupe_seconds": -1.0},
        ],
        ids=lambda settings: next(iter(settings)),
    )
    def test_impossible_settings_are_refused(
        self, driver: Driver, settings: dict[str, Any]
    ) -> None:
        with pytest.raises(MessageCoordinatorError, match=next(iter(settings))):
            driver.configure(**settings)
        config = driver.harness.run(driver.coordinator.config())
        assert config.model_copy(update={"version": 0}) == CoordinatorConfig()

    def test_settings_of_a_mailbox_that_is_full_may_shrink(self, driver: Driver) -> None:
        sent = [driver.send() for _ in range(3)]
        driver.configure(queue_size=1)
        assert driver.drain() == sent
