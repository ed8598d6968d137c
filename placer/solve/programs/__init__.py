"""What domains hold and what groups are made up of: one model, solved in two ways.

In whole numbers (`contents`), and relaxed, at prices (`prices`).
"""
