"""Requests and answers. Every route goes through access.page, so that none is open by mistake; a test checks this."""
