"""The flags on the first page of help, made from the options: see tests/settings_pages.py."""

FLAG_HELP = """\
Models and roles:
  --preset NAME            A whole explorer as a configuration: see explorer
                           presets list. Or its folder, with a slash
  --roles DIR              Folder of your own role files, which override the
                           built-in ones
  --skills DIR             Folder of your own skills
  --tools FILE.py          A Python file with tools of your own; it runs as you.
                           Repeatable
  --approval RULE          Which calls of tools are allowed, refused, or put to
                           you: ask execute_shell(git push*); deny mcp__*.
                           Repeatable
  --model NAME             Model of all roles: auto, offline, anthropic:NAME,
                           openai:NAME, or a bare NAME. Model of one role:
                           searcher=NAME; repeatable
  --effort VALUE           How much models reason: none, minimal, low, medium,
                           high, xhigh or max. Effort of one role: writer=high;
                           repeatable
  --lean                   One agent that fills in forms, for small local models
  --no-lean                Whatever the model's profile says, the whole team
  --judge MODEL            Model that checks whether the sources support the
                           cited sentences
  --no-shell               Agents cannot run commands at all
  --unsafe-shell           Agents run commands without a sandbox, with your
                           rights; the report says so

Limits per question ("none" removes one):
  --max-steps N            Maximum model turns of all agents (default: 300)
  --max-cost USD           Maximum total cost of a question in US dollars
                           (default: 5 where prices are known)
  --max-tokens N           Maximum total input and output tokens (default: 2
                           million where a price is not known)
  --max-tool-calls N       Maximum tool calls of all agents (default: none)
  --max-time TIME          Maximum time: 90, 90s, 10m, 2h (default: 1h)
  --max-outage TIME        How long to wait for a model that stopped answering,
                           before the run pauses; one that never answered fails
                           sooner (default: 10m)
  --max-agents N           Maximum helpers of a run; 0: the orchestrator works
                           alone (default: 40)
  --dry-run                Print models, limits and worst-case cost only; no
                           model is asked

Plans:
  --plan MODE              Plan before helpers start: off, ask (you approve,
                           edit or reject it), or auto (it is only shown).
                           --plan alone means ask
  --initial-queries N      Sub-questions of the plan, all looked up at the same
                           time in the first round
  --max-rounds N           Maximum rounds: turns in which the orchestrator calls
                           helpers, writers not counted
  --reflect                Assess each round, by sub-question

Input and output:
  --workspace DIR          Folder with the runs
  --output-format FORMAT   Format of stdout: text, json, or stream-json (one
                           record per line)
  --trust                  Trust this folder as its files and skills are now;
                           remembered until one changes
  --trust-folder           Take all settings of this folder's files, for this
                           command
  --ignore-folder          Leave out settings of this folder's files that need
                           trust
  -v, --verbose            Log to stderr; -vv: everything, with tracebacks
  -q, --quiet              Print only errors to stderr
  --lang LANGUAGE          Language of the report. Otherwise the question's
  -o, --output FILE        Also write the report to FILE: .md, .html, .pdf,
                           .docx, .json
  --notify TARGET          Say when the run ends: desktop, or a URL that gets a
                           webhook; repeatable
  --overwrite              Let -o replace a file that exists
  --file PATH              A file the question is about: text, HTML, PDF,
                           Office, EPUB; repeatable
  --corpus DIR             Folder of your own to search: text, markdown, HTML,
                           PDF, Office, EPUB
  --since-run RUN          Report what is new since an earlier run
  -c, --continue           Continue the latest run with a follow-up question"""
