"""How long transfers between roles take at the least, by who must be near whom.

`transfers` asks for the shortest time that none of the others refutes.
"""
