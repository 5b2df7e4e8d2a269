# Everyday commands. CI runs `.ci/run`: the README's commands, the same check, then the slow tests.
export UV_PYTHON_DOWNLOADS ?= never

.PHONY: setup format check slow crash floods bench golden

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

bench:  ## what a turn costs, beside plain SDK loops and bare HTTP
	uv run python bench/run.py

golden:  ## write the golden files anew; look at the difference before committing it
	uv run pytest --update-golden
