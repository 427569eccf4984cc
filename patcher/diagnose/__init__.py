"""What a run of the user's model shows, joined with what the rules find: causes, their cost, and their repair."""
