"""How long traffic between ranks takes at the least, whoever is where.

`traffic` has the table of all arguments.
"""
