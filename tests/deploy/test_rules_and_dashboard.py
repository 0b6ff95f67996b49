"""The alert rules and the Grafana dashboard: Prometheus accepts them, and they use metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.documented import DEPLOY, ROOT, names_in_code, table, used_in
from tests.needs import needs

pytestmark = pytest.mark.full


RULES = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = json.loads((DEPLOY / "grafana" / "evenly.json").read_text(encoding="utf-8"))
GUIDE = ROOT / "docs" / "guides" / "operate.md"


def promtool(*words: str | Path) -> str:
    done = subprocess.run([needs("promtool"), *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def expressions() -> list[str]:
    """Return the PromQL of every panel, with values for Grafana's variables."""
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]
    found += [each["expr"] for each in DASHBOARD["annotations"]["list"] if "expr" in each]
    return [re.sub(r"\$(job|instance)", ".*", text.replace("$__rate_interval", "1m")) for text in found]


def test_prometheus_accepts_the_rules_and_the_config() -> None:
    assert "13 rules found" in promtool("check", "rules", RULES)
    promtool("check", "config", "--syntax-only", DEPLOY / "prometheus" / "prometheus.yml")


def test_every_alert_fires_when_it_must_and_only_then() -> None:
    cases = RULES.with_name("alerts_test.yml")
    promtool("test", "rules", cases)
    fires = set(re.findall(r'alertname="(\w+)"', cases.read_text(encoding="utf-8")))
    assert fires == {alert["alert"] for alert in alerts()}


def test_an_alert_says_what_to_do_and_the_guide_has_it() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in {"page", "ticket"}
        assert set(alert["annotations"]) == {"summary", "description", "runbook"}
        assert alert["annotations"]["runbook"].endswith(".")
        assert f"| `{alert['alert']}` | {alert['labels']['severity']} |" in GUIDE.read_text(encoding="utf-8")


def test_prometheus_parses_every_panel(tmp_path: Path) -> None:
    named = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(expressions())]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": named}]}), encoding="utf-8")
    assert f"{len(named)} rules found" in promtool("check", "rules", file)


def test_rules_and_panels_use_metrics_that_exist() -> None:
    used = {name for text in [*expressions(), *(rule["expr"] for rule in rules())] for name in used_in(text)}
    assert used <= names_in_code()
    assert "evenly:pool_load" in RULES.read_text(encoding="utf-8")


def test_the_dashboard_shows_every_metric() -> None:
    assert names_in_code() - {name for text in expressions() for name in used_in(text)} == set()
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_table_has_the_metrics_of_the_code_and_no_others() -> None:
    assert set(table()) == names_in_code()
    assert len(table()) >= 27
