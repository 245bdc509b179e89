"""`describe`: one section per part of an object."""
