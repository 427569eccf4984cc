"""For coding assistants: the words of the command line as tools of the model context protocol."""
