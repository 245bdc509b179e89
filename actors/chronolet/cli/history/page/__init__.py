"""The HTML page of a part of the log: what it shows of each entry, and how it is written.

`viewer` understands the entries, with `pods` and `node` for the rows and `subjects` for what an entry is about;
`writing` writes the page of a session.
"""
