"""Questions with known answers, run one after the other: how many reports are right, cited, and at what cost."""
