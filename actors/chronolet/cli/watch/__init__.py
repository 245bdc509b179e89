"""`-w` and `wait`: follow objects as they change or until they meet a condition."""
