// cluster-ip: an interface whose IP packets travel as messages of the provider.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent.h"
#include "nodes.h"
#include "tun.h"
#include "worker.h"

namespace {

using namespace cluster::ip;

constexpr unsigned kQueuesMax = 16;
constexpr unsigned kMtuLeast = 1280;  // of IPv6
constexpr unsigned kMtuMost =
    65520;  // with its header a message still leaves at once, without an announcement
constexpr timespec kAgentPause = {2, 0};

struct CommandLine {
  std::vector<std::string> addresses;
  std::vector<std::string> nodes;
  bool agent = false;
  TunSettings tun = {"cluster0", 1500, 1, {}};
  std::uint16_t port = 9229;
  unsigned spin_us = 0;
};

std::string default_of(unsigned value) { return " (default: " + std::to_string(value) + ")"; }

void declare(CLI::App& app, CommandLine& line) {
  app.add_option(
         "-a,--address", line.addresses,
         "this node's address on the new interface, with the prefix of the network: one of IPv4, one of IPv6")
      ->required()
      ->expected(1, kAddressesMax)
      ->delimiter(',');
  app.add_option(
         "-n,--nodes", line.nodes,
         "names or addresses of all nodes on the Ethernet, this one among them; the same list on all nodes")
      ->delimiter(',');
  app.add_flag("-A,--agent", line.agent, "ask the agent of this node (clusterd) for the nodes instead");
  app.add_option("-i,--interface", line.tun.name,
                 "name of the new interface (default: " + line.tun.name + ")");
  app.add_option("-m,--mtu", line.tun.mtu, "longest packet in bytes" + default_of(line.tun.mtu))
      ->check(CLI::Range(kMtuLeast, kMtuMost));
  app.add_option(
         "-q,--queues", line.tun.queues,
         "queues of the interface, each with a thread; the same on all nodes" + default_of(line.tun.queues))
      ->check(CLI::Range(1U, kQueuesMax));
  app.add_option(
         "-p,--port", line.port,
         "UDP port of the first queue, the others follow; the same on all nodes" + default_of(line.port))
      ->check(CLI::Range(1, 65535 - static_cast<int>(kQueuesMax)));
  app.add_option("-s,--spin", line.spin_us,
                 "microseconds to look for the next packet before sleeping" + default_of(line.spin_us))
      ->check(CLI::Range(0, 1000000));
  app.set_config("-c,--config", "", "read options from a file, a line each: nodes=node1,node2");
  app.set_version_flag("--version", "cluster-ip " CLUSTER_VERSION);
  app.footer(
      "The interface exists while the command runs. FI_CLUSTER_* options are those in its environment:\n"
      "FI_CLUSTER_KEY_FILE, for example, names the key that all nodes have.\n\n"
      "  node1# cluster-ip --address 10.9.0.1/24,fd09::1/64 --nodes node1,node2\n"
      "  node2# cluster-ip --address 10.9.0.2/24,fd09::2/64 --nodes node1,node2\n"
      "  node1# ping 10.9.0.2");
}

/// Tells systemd that the interface is there (sd_notify(3)).
void notify_ready() {
  const char* name = std::getenv("NOTIFY_SOCKET");
  if (name == nullptr || *name == 0) return;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::strlen(name);
  if (length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, name, length);
  if (*name == '@') address.sun_path[0] = 0;
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  constexpr char kReady[] = "READY=1";
  ::sendto(socket.number(), kReady, sizeof kReady - 1, 0, reinterpret_cast<const sockaddr*>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
}

std::vector<Node> find_nodes(const CommandLine& line) {
  return line.agent ? nodes_of_agent() : resolve(line.nodes);
}

std::string own_address(const std::vector<Node>& nodes) {
  const Node* own = own_node(nodes);
  if (own != nullptr) return own->address;
  std::string all;
  for (const Node& node : nodes) all += " " + node.name + " (" + node.address + ")";
  throw std::runtime_error("this node is not in the list of nodes: no interface here has an address of" +
                           all);
}

std::vector<OwnAddress> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<OwnAddress> addresses;
  for (const std::string& text : texts) addresses.push_back(OwnAddress::parse(text));
  if (addresses.size() == 2 && is_ipv4(addresses[0].address) == is_ipv4(addresses[1].address))
    throw std::runtime_error(
        "give at most one address of IPv4 and one of IPv6: --address has two of the same family");
  return addresses;
}

/// Sleeps until a signal ends the command; asks the agent meanwhile.
void serve(const CommandLine& line, const sigset_t& signals, std::vector<std::unique_ptr<Worker>>& workers) {
  if (!line.agent) {
    int got = 0;
    sigwait(&signals, &got);
    return;
  }
  while (::sigtimedwait(&signals, nullptr, &kAgentPause) < 0) {
    try {
      const std::vector<Node> nodes = nodes_of_agent();
      for (const auto& worker : workers) worker->learn(nodes);
    } catch (const std::runtime_error&) {
      // The agent is being restarted: the nodes stay.
    }
  }
}

void print_counts(const std::vector<std::unique_ptr<Worker>>& workers) {
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const Counts& counts = workers[i]->counts();
    std::fprintf(stderr,
                 "cluster-ip: queue %zu: %llu packets (%llu bytes) sent, %llu (%llu bytes) received; not "
                 "sent: %llu without a "
                 "node, %llu too many, %llu failed; refused: %llu\n",
                 i, static_cast<unsigned long long>(counts.sent.value()),
                 static_cast<unsigned long long>(counts.sent_bytes.value()),
                 static_cast<unsigned long long>(counts.received.value()),
                 static_cast<unsigned long long>(counts.received_bytes.value()),
                 static_cast<unsigned long long>(counts.no_node.value()),
                 static_cast<unsigned long long>(counts.too_many.value()),
                 static_cast<unsigned long long>(counts.failed.value()),
                 static_cast<unsigned long long>(counts.refused.value()));
  }
}

void run(CommandLine& line) {
  // Buffers wait for nodes that come back after all others are gone.
  ::setenv("FI_CLUSTER_END_ABANDONED", "no", 1);
  // The threads leave these signals to serve().
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  WorkerSettings settings;
  settings.addresses = line.tun.addresses = parse_addresses(line.addresses);
  const std::vector<Node> nodes = find_nodes(line);
  settings.node_address = own_address(nodes);
  settings.port = line.port;
  settings.queues = static_cast<std::uint8_t>(line.tun.queues);
  settings.spin = std::chrono::microseconds(line.spin_us);
  const std::vector<Descriptor> queues = open_tun(line.tun);
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < queues.size(); ++i)
    workers.push_back(std::make_unique<Worker>(settings, i, queues[i], nodes));
  std::vector<std::thread> threads;
  for (const auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
  std::fprintf(stderr, "cluster-ip: %s is up, over %s\n", line.tun.name.c_str(),
               settings.node_address.c_str());
  notify_ready();
  serve(line, signals, workers);
  for (const auto& worker : workers) worker->stop();
  for (std::thread& thread : threads) thread.join();
  print_counts(workers);
}

}  // namespace

int main(int count, char** words) {
  CLI::App app("An interface whose IP packets travel to the other nodes over the provider cluster.",
               "cluster-ip");
  CommandLine line;
  declare(app, line);
  try {
    app.parse(count, words);
    if (line.agent == !line.nodes.empty())
      throw CLI::ValidationError("name the nodes with --nodes, or give --agent");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "cluster-ip: %s (see \"cluster-ip --help\")\n", error.what());
    return 2;
  }
  try {
    run(line);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cluster-ip: %s\n", error.what());
    return 1;
  }
  return 0;
}
