"""What a run used up, read off its journal: tokens, money, time, and the chain of waiting that made it last."""
