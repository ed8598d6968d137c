"""What domains hold and what groups are made up of: one model, asked in two ways.

In whole numbers (`contents`), and relaxed, at prices (`prices`).
"""
