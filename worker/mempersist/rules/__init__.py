"""What the stores of the platform accept, checked before a call: one home for every adapter of a port, on any host."""
