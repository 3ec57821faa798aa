"""The command line: parses settings, wires the ports, prints. Holds no rule of the protocol."""
