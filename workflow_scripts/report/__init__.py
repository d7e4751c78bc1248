"""The report's page and table; `python -m workflow_scripts.report` makes them."""
