"""Agents: the loop, its rules, its budget, and sub-agents as tools."""
