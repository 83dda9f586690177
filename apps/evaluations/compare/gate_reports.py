"""A gate's decision in the forms that build servers and code hosts read: JUnit XML and SARIF. Pure."""

from __future__ import annotations

import hashlib
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from apps.evaluations.compare.gate import NOT_COMPARABLE, Check, GateResult

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROW_RULE = "row-fell"
_EXITS = {0: "passed", 1: "failed", NOT_COMPARABLE: "not comparable"}


def to_junit(result: GateResult) -> bytes:
    """Return JUnit XML: a test case per check; advisory ones are skipped, and say why."""
    checks, is_error = result.checks, result.code == NOT_COMPARABLE
    suite = Element(
        "testsuite",
        name="eval_gate",
        tests=str(len(checks) + is_error),
        failures=str(sum(c.verdict == "failed" for c in checks)),
        errors=str(int(is_error)),
        skipped=str(sum(c.verdict == "advisory" for c in checks)),
    )
    facts = SubElement(suite, "properties")
    for name, value in _facts(result).items():
        SubElement(facts, "property", name=name, value=str(value))
    for check in checks:
        case = SubElement(suite, "testcase", classname="evaluations", name=check.name)
        if check.verdict == "failed":
            SubElement(case, "failure", message=check.message)
        elif check.verdict == "advisory":
            SubElement(case, "skipped", message=check.message)
    if is_error:
        case = SubElement(suite, "testcase", classname="evaluations", name="comparable")
        SubElement(case, "error", message=result.reason)
    return bytes(tostring(suite, encoding="utf-8", xml_declaration=True))


def to_sarif(result: GateResult, *, at: str = "") -> dict[str, Any]:
    """Return a SARIF 2.1.0 log (OASIS Standard of 27 March 2020) as JSON values.

    Every check is a result: kind ``fail`` with level ``error``, ``pass``, or ``review`` where it is advisory. Each row that
    passed in the baseline and fails now is one more. What could not be compared has no result, and an invocation that failed.

    Args:
        at: path of the file beside which a code host shows the findings, relative to its repository; "" for none.
    """
    fails_by_rows = any(c.name == "rows" and c.verdict == "failed" for c in result.checks)
    results = [_check(check, result, at) for check in result.checks]
    results += [_row(row, result, at, is_error=fails_by_rows) for row in result.failed_rows]
    rules = [{"id": check.name, "shortDescription": {"text": _about(check)}} for check in result.checks]
    if result.failed_rows:
        rules.append(
            {"id": _ROW_RULE, "shortDescription": {"text": "A row passed in the baseline but fails now."}}
        )
    known = result.code != NOT_COMPARABLE
    invocation: dict[str, Any] = {
        "executionSuccessful": known,
        "exitCode": result.code,
        "exitCodeDescription": _EXITS[result.code],
    }
    if not known:
        told = {"level": "error", "message": {"text": result.reason}}
        invocation["toolExecutionNotifications"] = [told]
    run = {
        "tool": {"driver": {"name": "Groundwork eval_gate", "rules": rules}},
        "automationDetails": {"id": f"eval_gate/arm-{result.arm}"},
        "invocations": [invocation],
        "results": results,
        "properties": {"reason": result.reason, **_facts(result)},
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _facts(result: GateResult) -> dict[str, Any]:
    """Return which two arms were compared."""
    facts = {
        "arm": result.arm,
        "armName": result.arm_name,
        "baselineArm": result.baseline_arm,
        "baselineName": result.baseline_name,
    }
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _check(check: Check, result: GateResult, at: str) -> dict[str, Any]:
    kind = {"passed": "pass", "failed": "fail", "advisory": "review"}[check.verdict]
    facts = {
        "baseline": check.baseline,
        "value": check.value,
        "low": check.low,
        "high": check.high,
        "noise": check.noise,
        "kappaLow": check.kappa_low,
        "ceiling": check.ceiling,
        "calibration": check.calibration,
        "calibrationNumber": check.calibration_number,
        "calibratedLow": check.calibrated_low,
        "calibratedHigh": check.calibrated_high,
        "rawBaseline": check.raw_baseline,
        "rawValue": check.raw_value,
    }
    return {
        "ruleId": check.name,
        "kind": kind,
        # A level is about failures alone; the standard has "none" stand beside every other kind.
        "level": "error" if kind == "fail" else "none",
        "message": {"text": check.message},
        "locations": [_place(f"arm/{result.arm}/score/{check.name}", "member", at)],
        "partialFingerprints": {"check/v1": _hash(check.name)},
        "properties": {name: value for name, value in facts.items() if value is not None},
    }


def _row(row: int, result: GateResult, at: str, *, is_error: bool) -> dict[str, Any]:
    return {
        "ruleId": _ROW_RULE,
        "kind": "fail",
        "level": "error" if is_error else "warning",
        "message": {"text": f"Row {row} passed in the baseline but fails now."},
        "locations": [_place(f"arm/{result.arm}/row/{row}", "element", at)],
        "partialFingerprints": {"row/v1": _hash(f"row {row}")},
    }


def _place(name: str, kind: str, at: str) -> dict[str, Any]:
    place: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name, "kind": kind}]}
    if at:
        place["physicalLocation"] = {"artifactLocation": {"uri": at}, "region": {"startLine": 1}}
    return place


def _about(check: Check) -> str:
    return (
        "Rows that passed in the baseline but fail now."
        if check.name == "rows"
        else f"{check.name}, compared with the baseline."
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
