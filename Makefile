# Everyday commands. CI runs `.ci/run`: the README's commands, the same check, then the slow tests.
export UV_PYTHON_DOWNLOADS ?= never

.PHONY: docs overshoot setup format check slow crash floods attacks hostile-calls stops bench golden outages

setup:  ## everything a developer needs, in .venv
	uv sync --locked --all-groups

format:  ## lay the code out and mend what can be mended
	uv run ruff format
	uv run ruff check --fix

check:  ## the one check command: layout, lint, types, imports, tests with coverage
	.ci/check

slow:  ## the tests left out of the check because they take long
	uv run pytest -m slow

crash:  ## end the process at every barrier, resume it, compare; prints the figures
	uv run python tests/crash/enumerate.py --all

floods:  ## servers that send without end, at every adapter: prints memory, time and error of each
	PYTHONPATH=tests uv run python -m faults.flood_table

attacks:  ## everything an outsider may try, each with a control that succeeds: prints attempts and successes
	uv run python tests/attacks/table.py

hostile-calls:  ## calls and commands that attack the run's own folder, each a run that is killed and resumed; a table
	PYTHONPATH=tests uv run python -m attacks.hostile_calls

stops:  ## how long a run takes to end by each signal and order, while models and commands are slow; a table
	PYTHONPATH=tests uv run python -m faults.stop_table

outages:  ## servers that are gone in the middle of a fan-out, for 10 s to 20 min: prints what became of the runs
	PYTHONPATH=tests uv run python -m faults.outage_table

overshoot:  ## limits at servers that count falsely, cut replies, and through kills: prints what each billed
	PYTHONPATH=tests uv run python -m faults.overshoot_table

docs:  ## the pages of docs/ as a site in site/; a warning fails
	uv run --group docs zensical build --strict --clean

bench:  ## what a turn costs, beside plain SDK loops and bare HTTP
	uv run python bench/run.py

golden:  ## write the golden files anew; look at the difference before committing it
	uv run pytest --update-golden
