"""What a script is: the command line it reads, the model it builds and runs, the checkpoints it writes."""
