# docker build -t explorer .
# docker run --rm -it -e ANTHROPIC_API_KEY -v "$PWD:/data" --user "$(id -u):$(id -g)" explorer "What was notable today?"
# See docs/docker.md.

FROM python:3.13-slim AS build
RUN pip install --no-cache-dir "uv>=0.8,<1"
ENV UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/explorer UV_LINK_MODE=copy
WORKDIR /build
COPY pyproject.toml uv.lock README.md LICENSE CHANGELOG.md ./
# The libraries first: a change of the source alone does not install them again.
RUN uv sync --locked --no-dev --extra uvloop --no-install-project
COPY src src
COPY prompts prompts
COPY presets presets
RUN uv sync --locked --no-dev --extra uvloop --no-editable --compile-bytecode

FROM python:3.13-slim
RUN useradd --create-home --uid 1000 explorer && mkdir /data && chown explorer /data
COPY --from=build /opt/explorer /opt/explorer
ENV PATH=/opt/explorer/bin:$PATH
USER explorer
# Runs are in /data/workspace, the library of reports in /data/reports; `.env` and `explorer.toml` are read from /data.
WORKDIR /data
ENTRYPOINT ["explorer"]
CMD ["--help"]
