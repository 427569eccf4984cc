"""What running code does to what others see: what it writes and binds, who shares memory, what runs unread."""
