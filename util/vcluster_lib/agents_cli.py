"""The command `vcluster agents`."""
import signal

from . import agents, page, state


def add_parser(commands, with_name):
    parser = with_name(commands.add_parser(
        "agents", help="start, stop and show the agents of the nodes",
        description="Without options: shows which agents run."))
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--start", metavar="NODE|all", help="start the agent of a node, or all agents")
    which.add_argument("--stop", metavar="NODE|all", help="stop the agent of a node cleanly, or all agents")
    which.add_argument("--kill", metavar="NODE", help="kill the agent of a node, so that the node looks dead to the others")


def run(record, options):
    if options.start == "all":
        agents.ensure()
        agents.start_all(record)
    elif options.start:
        agents.ensure()
        agents.start(record, state.node(record, options.start))
    elif options.stop == "all":
        for holder in record["nodes"]:
            agents.stop(record, holder)
    elif options.stop:
        agents.stop(record, state.node(record, options.stop))
    elif options.kill:
        agents.stop(record, state.node(record, options.kill), signal.SIGKILL)
    else:
        show(record)
    return 0


def show(record):
    lines = agents.describe(record) + ([page.describe(record)] if "page" in record else [])
    print("\n".join(lines) if lines else "no agents: \"vcluster agents --start all\" or \"vcluster up --agents\" starts them")
