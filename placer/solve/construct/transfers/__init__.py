"""Roles with transfers between them: partners near, in lines, runs or sets of nodes."""
