"""Elements that a mask picks: how they are read, counted, changed and written back, and what could be done to all."""
