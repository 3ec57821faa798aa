"""The only road from Python to the program: addresses, instructions, transactions, views.

Owns: the artefacts' meaning, the RPC door, sending and confirming.
Never: decides what to do in a round (client) or repeats a rule of the program (rules).
Next: client.py is what others hold; errors.py is what they catch.
"""
