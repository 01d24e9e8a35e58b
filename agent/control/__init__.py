"""A running session from elsewhere: its socket, who looks on and steers it, here or over SSH."""
