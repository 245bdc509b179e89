"""Files in the state folder: specs, secrets, pod logs."""
