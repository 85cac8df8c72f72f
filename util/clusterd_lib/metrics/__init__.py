"""Metrics for Prometheus: what this node knows, in the text format, on the agent's TCP port.

families   from what was found out to families of metrics; names and units after the conventions of Prometheus
scrape     one HTTP request, and from where it is permitted
"""
