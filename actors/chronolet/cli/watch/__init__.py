"""`-w` and `wait`: following objects until they change or meet a condition."""
