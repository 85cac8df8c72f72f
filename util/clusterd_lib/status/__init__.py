"""cluster-status and cluster-map: what an agent knows, as text, JSON, or a picture.

cli       options
text      tables for a terminal
matrix    links as one matrix per rail
topology  nodes and rails as SVG, for --map
map_cli   cluster-map: what is wired to what
"""
