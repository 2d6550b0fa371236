"""The alert rules and dashboards that are shipped name metrics that the server tells."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml
from starlette.testclient import TestClient

_OPS = Path(__file__).resolve().parents[2] / "ops"
_METRIC = re.compile(r"\bafl_[a-z_]+")


def _told(admin: TestClient) -> set[str]:
    text = admin.get("/api/v1/metrics").text
    return {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


def test_alerts_are_about_metrics_that_there_are(admin: TestClient) -> None:
    text = (_OPS / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    assert len(rules) >= 5
    for rule in rules:
        named = set(_METRIC.findall(rule["expr"]))
        assert named, rule["alert"]
        assert named <= _told(admin), rule["alert"]
        assert {"summary", "description"} <= rule["annotations"].keys()


def test_the_dashboard_shows_metrics_that_there_are(admin: TestClient) -> None:
    dashboard = json.loads((_OPS / "grafana" / "agentflow.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(asked) >= 8
    for expression in asked:
        assert set(_METRIC.findall(expression)) <= _told(admin), expression


def test_the_scrape_job_asks_the_route_that_there_is(admin: TestClient) -> None:
    job = yaml.safe_load((_OPS / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    (scrape,) = job["scrape_configs"]
    assert admin.get(scrape["metrics_path"]).status_code == 200
