"""`fix-compile integrate`: a script that compiles nothing gets arguments for it, the call, and clean checkpoints."""
