"""FC404: a loop over the groups, or experts, that have any rows."""
