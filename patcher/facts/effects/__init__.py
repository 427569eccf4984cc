"""What running code does to what others see: writes, shared memory, what stays, what can be evaluated anew."""
