"""What an agent finds out.

rails      the Ethernet interfaces of this node
links      round trip, loss and path MTU of every rail to every node
findings   what is wrong with the wiring or the settings, from what nodes say of themselves
clock      jumps of the clock
load       processor, memory and traffic of this node, with a short past
endpoints  the reports of running endpoints of the provider
rate       how many bits a second pass a link, on request
"""
