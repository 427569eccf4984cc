"""The parts of the HTML report; ``patcher.report.diagnosis_html`` puts them together."""
