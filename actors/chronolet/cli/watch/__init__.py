"""The flag `-w` and the command `wait`, which follow objects as they change or until they meet a condition."""
