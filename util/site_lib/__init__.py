"""The documentation site: which files are its pages, and what they say (util/site)."""
