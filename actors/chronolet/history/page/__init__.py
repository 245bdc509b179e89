"""Builds the self-contained HTML page of a part of the log.

`viewing` defines what a page shows, `recording` collects it, `document` writes the page. `assets` has the page's own
markup, style and scripts. docs/adr/0054 explains the layout of the data.
"""
