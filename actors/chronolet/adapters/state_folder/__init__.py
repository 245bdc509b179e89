"""Files in the state folder: specs, Secrets, pod logs."""
