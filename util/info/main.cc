// cluster-info: shows what endpoints would use on this node, and what the endpoints of running processes do.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "endpoint_text.h"
#include "endpoints.h"
#include "host_report.h"
#include "host_text.h"
#include "json.h"
#include "ports_text.h"

namespace {

using namespace cluster;
using namespace cluster::info;

struct CommandLine {
  bool json = false;
  bool host = false;
  bool processes = false;
  bool why = false;
  bool ports = false;
  std::vector<int> pids;
};

/// Otherwise CLI11 words the error for a wrong one in terms of numbers and types.
std::string process_id(const std::string& word) {
  const bool number =
      !word.empty() && word.size() < 10 && word.find_first_not_of("0123456789") == std::string::npos;
  if (!number || std::stoi(word) == 0) throw CLI::ValidationError("'" + word + "' is not a process id");
  return word;
}

void declare(CLI::App& app, CommandLine& line) {
  app.add_flag("-H,--host", line.host, "only what endpoints would use on this node");
  app.add_flag("-a,--all", line.processes,
               "only the running processes, all of this user (root: of all users)");
  app.add_option("-p,--pid", line.pids, "only this process; may be given several times")
      ->transform(process_id)
      ->allow_extra_args(false);
  app.add_flag("-w,--why", line.why,
               "one sentence for each endpoint: which peer it waits for, and what the peer has to do");
  app.add_flag("--ports", line.ports,
               "only which ports must be open between nodes, as rules for nftables, firewalld and a security "
               "group")
      ->excludes("--host")
      ->excludes("--all")
      ->excludes("--pid")
      ->excludes("--why");
  app.add_flag("-j,--json", line.json, "as JSON");
  app.set_version_flag("--version", "cluster-info " CLUSTER_VERSION);
  app.footer(
      "Without options: this node and all running processes. The command shows the endpoints of its own\n"
      "network namespace. Root sees the endpoints of all namespaces; in a container or a virtual node, root\n"
      "needs --pid for this. FI_CLUSTER_* options are those in the environment of this command.\n\n"
      "  FI_CLUSTER_IFACE=eth1 cluster-info --host\n"
      "  FI_CLUSTER_PORTS=40000-40063 cluster-info --ports\n"
      "  cluster-info --pid 4711 --why\n"
      "  vcluster exec node1 cluster-info --pid 4711 --json");
}

/// The message for a named process that has no endpoint.
std::string no_endpoint_text(int pid) {
  const std::string name = "process " + std::to_string(pid);
  if (::kill(pid, 0) != 0 && errno == ESRCH) return name + ": no such process";
  const std::string command = command_of(pid);
  return name + (command.empty() ? "" : " (" + command + ")") +
         " has no endpoint that this user may see (mpirun is not a rank: name a process that it has started)";
}

/// Prints a message for each process named on the command line that has no endpoint; false if there is one.
bool all_found(const CommandLine& line, const EndpointReports& answers) {
  bool there = true;
  for (const int pid : line.pids) {
    const bool found = std::any_of(answers.answers.begin(), answers.answers.end(),
                                   [pid](const EndpointReport& answer) { return answer.process == pid; });
    if (!found) std::fprintf(stderr, "cluster-info: %s\n", no_endpoint_text(pid).c_str());
    there = there && found;
  }
  return there;
}

int print_ports() {
  bool from_user = false;
  std::string error;
  const provider::PortRange range = ports_in_use(from_user, error);
  if (!error.empty()) {
    std::fprintf(stderr, "cluster-info: %s\n", error.c_str());
    return 1;
  }
  std::fputs(ports_text(range, from_user).c_str(), stdout);
  return 0;
}

int run(const CommandLine& line) {
  if (line.ports) return print_ports();
  const bool processes = line.processes || line.why || !line.pids.empty();
  const bool host = line.host || !processes;
  const bool running = processes || !line.host;
  std::string text;
  std::string json;
  EndpointReports answers;
  if (host) {
    const Report report = host_report();
    text += host_text(report);
    json += json_members(report);
  }
  if (running) {
    answers = query_endpoints(line.pids, line.json ? keep_as_json : nullptr);
    if (line.json && line.pids.empty() && ::geteuid() == 0) shorten(answers);
    if (line.why) {
      for (EndpointReport& answer : answers.answers) answer.launcher = launcher_of(answer.process);
    }
    if (line.json) {
      json += (json.empty() ? "" : ",\n") + endpoints_json(answers);
    } else {
      text += line.why ? reasons_text(answers) : endpoints_text(answers, !line.pids.empty());
    }
  }
  if (line.json) {
    text = "{" + json + "}\n";
  } else if (text.starts_with('\n')) {
    text.erase(0, 1);
  }
  std::fputs(text.c_str(), stdout);
  return all_found(line, answers) ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  CLI::App app("What this node offers to the cluster provider, and what running endpoints do.",
               "cluster-info");
  CommandLine line;
  declare(app, line);
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "cluster-info: %s (see \"cluster-info --help\")\n", error.what());
    return 2;
  }
  return run(line);
}
