"""FC603: functions that look something up on the host, in compiled code."""
