"""The setting of approval rules: how they are written, in flags, the environment and files."""

from typing import Annotated

from explorer.schema.approvals import RuleTexts, rule_texts
from explorer.schema.setting import Flag, Group, Setting, ValueFormat, WithoutTrust

APPROVAL_RULES = ValueFormat(
    rule_texts, "rules like `ask execute_shell(git push*)`: allow, ask or deny, a tool, and a pattern of its argument"
)

ApprovalRulesSetting = Annotated[
    RuleTexts,
    Setting(
        "EXPLORER_APPROVAL_RULES",
        APPROVAL_RULES,
        "Which calls of tools are allowed, refused, or put to you: `ask execute_shell(git push*); deny mcp__*`",
        Group.MODELS,
        flags=(Flag("--approval", "RULE", "Repeatable"),),
        details="The first rule that fits decides; all origins together",
        anchor="approval-rules",
        without_trust=WithoutTrust.TIGHTENS,
    ),
]
