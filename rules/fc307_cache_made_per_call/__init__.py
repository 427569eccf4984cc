"""FC307: buffers that a loop makes anew for each request, for compiled code to write into."""
