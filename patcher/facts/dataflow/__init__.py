"""The order in which the code of one function runs: its control-flow graph, and the one fixpoint over such graphs."""
