// cluster-relay: forwards sealed frames between the endpoints of jobs. The agent of a node starts it
// (clusterd --relay), and gives it the relay keys of the jobs on its standard input: a line for each job,
// with one or two keys in hexadecimal digits. With these keys, the program can neither open nor forge frames,
// and it needs no privilege. It ends when its input ends, so it does not outlive the agent. On its standard
// output it prints its addresses, one a line, and an empty line. Then it prints a line with its totals each
// time that they have changed, at most once a second.
//
// Other programs may run as the same user. They must not read the keys out of this process.
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "os/libcrypto.h"
#include "os/system_clock.h"
#include "os/system_random.h"
#include "provider/relay_server.h"

namespace {

using namespace cluster;

constexpr std::size_t kKeyDigits = 2 * crypto::kDigestSize;

class StandardError final : public Log {
 public:
  bool enabled(LogLevel level) const override { return level == LogLevel::warn; }
  void write(LogLevel, const char* line) override { std::fprintf(stderr, "cluster-relay: %s\n", line); }
};

/// Returns the bytes of a relay key, or nothing if the word is none.
std::vector<std::byte> key_bytes(const std::string& word) {
  if (word.size() != kKeyDigits || word.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    return {};
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < word.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(word.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Reads the keys up to an empty line. Throws if a word is no key.
std::vector<relay::JobRelayKeys> read_jobs(const std::shared_ptr<const crypto::Cryptography>& library) {
  std::vector<relay::JobRelayKeys> jobs;
  std::string line;
  while (std::getline(std::cin, line) && !line.empty()) {
    std::istringstream words(line);
    relay::JobRelayKeys& job = jobs.emplace_back();
    for (std::string word; words >> word;) {
      const std::vector<std::byte> bytes = key_bytes(word);
      if (bytes.empty())
        throw std::runtime_error("line " + std::to_string(jobs.size()) +
                                 ": a relay key has 64 hexadecimal digits");
      job.push_back(std::make_shared<const relay::RelayKey>(library, bytes));
    }
    crypto::wipe(line);
  }
  if (jobs.empty()) throw std::runtime_error("there is no relay key in the input");
  return jobs;
}

/// Prints the totals of the relay, as JSON.
class TotalsPrinter {
 public:
  explicit TotalsPrinter(const relay::Relay& relay) : relay_(relay) {}

  /// Prints the totals if they have changed and a second has passed. Returns the time in milliseconds after
  /// which to call again even if nothing arrives, or -1.
  int print(Time now) {
    const Printed present{relay_.members(), relay_.totals()};
    if (present == printed_) return -1;
    if (now < next_) return static_cast<int>((next_ - now) / 1ms) + 1;
    const auto number = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
    std::printf(R"({"members": %llu, "frames": %llu, "bytes": %llu, "refused": %llu, "dropped": %llu})"
                "\n",
                number(present.members), number(present.totals.frames), number(present.totals.bytes),
                number(present.totals.refused), number(present.totals.dropped));
    std::fflush(stdout);
    printed_ = present;
    next_ = now + 1s;
    return -1;
  }

 private:
  struct Printed {
    std::size_t members = 0;
    relay::Totals totals;
    bool operator==(const Printed&) const = default;
  };

  const relay::Relay& relay_;
  Printed printed_;
  Time next_{};
};

int run(std::uint16_t port, std::uint64_t rate_mbit) {
  StandardError log;
  os::SystemClock clock;
  os::SystemRandom random;
  std::string reason;
  const std::shared_ptr<const crypto::Cryptography> library = os::load_libcrypto(reason);
  if (library == nullptr) throw std::runtime_error(reason);
  std::vector<relay::JobRelayKeys> jobs = read_jobs(library);
  int error = 0;
  relay::Limits limits;
  limits.bytes_per_second = rate_mbit * 1'000'000 / 8;
  const auto server =
      provider::RelayServer::open(std::move(jobs), provider::list_interface_addresses({}, error), port, clock,
                                  random, log, reason, limits);
  if (server == nullptr) throw std::runtime_error("no relay is possible: " + reason);
  for (const SocketAddress& each : server->addresses()) std::printf("%s\n", each.text().c_str());
  std::printf("\n");
  std::fflush(stdout);
  TotalsPrinter totals(server->relay());
  for (;;) {
    const os::NextWake next = server->serve();
    const int print_after = totals.print(clock.now());
    pollfd wanted[] = {{STDIN_FILENO, POLLIN, 0}, {next.descriptor, POLLIN, 0}};
    const bool now = next.after == Duration{0};
    ::poll(wanted, 2, now ? 0 : print_after);
    if (wanted[0].revents != 0) return 0;  // the agent has ended
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_DUMPABLE, 0);
  CLI::App app{"Forwards sealed frames between endpoints; clusterd --relay starts it."};
  std::uint16_t port = provider::kRelayPort;
  std::uint64_t rate = 10'000;
  app.add_option("--port", port, "UDP port of the relay")->capture_default_str()->check(CLI::Range(1, 65535));
  app.add_option("--rate", rate, "Mbit/s that all endpoints may use together")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000'000));
  app.set_version_flag("--version", "cluster-relay " CLUSTER_VERSION);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(port, rate);
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "cluster-relay: %s\n", wrong.what());
    return 1;
  }
}
