"""Programs of users: recorded once, and reached again in the processes that measure."""
