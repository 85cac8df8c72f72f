#include "endpoints.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "os/descriptor.h"
#include "os/local_socket.h"
#include "provider/report_server.h"
#include "report_words.h"

namespace cluster::info {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// How long to wait: a stopped process, or a forked child that only inherited the socket, does not answer.
constexpr std::chrono::seconds kAnswerTimeout{5};
constexpr std::chrono::seconds kEverybodyTimeout{1};
constexpr std::size_t kUserEndpointsMax = 512;
constexpr std::size_t kUserBytesMax = 4u << 20;
constexpr unsigned kListens = 0x10000;  // __SO_ACCEPTCON: connections carry the same name

/// The names of report sockets in the network namespace of a process ("self" or its number), without the zero byte
/// that the kernel shows as '@'.
std::set<std::string> listeners(const std::string& process) {
  std::ifstream table("/proc/" + process + "/net/unix");
  std::set<std::string> names;
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, references, protocol, flags, type, state, node, name;
    words >> number >> references >> protocol >> flags >> type >> state >> node >> name;
    const std::string prefix = "@" + std::string(provider::kReportSocketPrefix);
    if (!name.starts_with(prefix) || flags.size() > 8) continue;
    if ((std::strtoul(flags.c_str(), nullptr, 16) & kListens) != 0) names.insert(name.substr(1));
  }
  return names;
}

/// True if a signal or a debugger has stopped the process, so that it cannot answer.
bool is_stopped(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(") ");  // the command may contain brackets
  return end != std::string::npos && end + 2 < text.size() && (text[end + 2] == 'T' || text[end + 2] == 't');
}

/// 0 if this process may not see it.
ino_t network_of(const std::string& process) {
  struct stat status {};
  return ::stat(("/proc/" + process + "/ns/net").c_str(), &status) == 0 ? status.st_ino : 0;
}

/// True outside of all containers: the kernel shows some network settings of the node only there.
bool in_first_network() { return ::access("/proc/sys/net/core/dev_weight", F_OK) == 0; }

/// One process of each network namespace that this one may enter, its own ("self") first.
std::vector<std::string> networks() {
  std::vector<std::string> found = {"self"};
  std::set<ino_t> known = {network_of("self"), 0};
  DIR* const processes = ::geteuid() == 0 ? ::opendir("/proc") : nullptr;
  while (const dirent* entry = processes != nullptr ? ::readdir(processes) : nullptr) {
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") == std::string::npos && known.insert(network_of(name)).second)
      found.push_back(name);
  }
  if (processes != nullptr) ::closedir(processes);
  return found;
}

/// Moves this thread to the network namespace of another process as long as this object lives.
class NetworkVisit {
 public:
  explicit NetworkVisit(const std::string& process) {
    if (process == "self") return;
    home_ = os::Descriptor(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    const os::Descriptor there(::open(("/proc/" + process + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
    arrived_ = home_ && there && ::setns(there.number(), CLONE_NEWNET) == 0;
  }
  NetworkVisit(const NetworkVisit&) = delete;
  NetworkVisit& operator=(const NetworkVisit&) = delete;
  ~NetworkVisit() {
    if (home_ && arrived_) ::setns(home_.number(), CLONE_NEWNET);
  }
  bool arrived() const { return arrived_; }

 private:
  os::Descriptor home_;
  bool arrived_ = true;
};

/// What one user has, and may still cost.
struct Share {
  std::size_t endpoints = 0;
  std::size_t bytes_left = kUserBytesMax;
};

struct Query {
  os::LocalSocket socket;
  EndpointReport answer;
  Share* share = nullptr;  ///< null for a user without limits
  bool open = true;
};

/// The connection itself is the request.
Query ask(const std::string& name) {
  Query question;
  question.answer.endpoint = printable(name.substr(provider::kReportSocketPrefix.size()));
  question.socket = os::LocalSocket::connect(name, question.answer.trouble);
  question.open = static_cast<bool>(question.socket);
  if (question.open) question.answer.process = question.socket.peer_process();
  if (question.open) question.answer.user = question.socket.peer_user().value_or(~0u);
  if (question.answer.process != 0) question.answer.command = command_of(question.answer.process);
  return question;
}

void await_report(Query& question, SteadyClock::time_point end) {
  while (question.open) {
    std::optional<Report> report =
        provider::receive_report(question.socket, question.answer.trouble,
                                 question.share != nullptr ? &question.share->bytes_left : nullptr);
    question.open = !report && question.answer.trouble.empty();
    if (report) question.answer.report = std::move(*report);
    if (!question.open) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now()).count();
    pollfd watch{question.socket.descriptor(), POLLIN, 0};
    if (left <= 0 || ::poll(&watch, 1, static_cast<int>(left)) == 0) {
      question.answer.trouble = "it does not answer: is the process stopped?";
      question.open = false;
    }
  }
}

}  // namespace

std::string command_of(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string command;
  std::getline(file, command);
  return printable(command);
}

EndpointReports query_endpoints(const std::vector<int>& processes,
                                const std::function<void(EndpointReport&)>& arrived) {
  os::raise_descriptor_limit();
  EndpointReports result;
  std::map<unsigned, Share> shares;
  const bool everybody = processes.empty() && ::geteuid() == 0;
  std::vector<Query> questions;
  const bool everywhere = !processes.empty() || in_first_network();
  for (const std::string& network : everywhere ? networks() : std::vector<std::string>{"self"}) {
    const NetworkVisit visit(network);
    if (!visit.arrived()) continue;
    for (const std::string& name : listeners(network)) {
      Query question = ask(name);
      question.answer.network = network;
      question.share = everybody && question.answer.user != 0 ? &shares[question.answer.user] : nullptr;
      if (question.share != nullptr && ++question.share->endpoints > kUserEndpointsMax) {
        ++result.left_out;
        continue;
      }
      result.neighbours.push_back(
          {network, question.answer.endpoint, question.answer.process, question.answer.command});
      const bool wanted = processes.empty() || std::find(processes.begin(), processes.end(),
                                                         question.answer.process) != processes.end();
      if (!wanted) continue;
      if (question.open && !question.socket.same_user() && ::geteuid() != 0) {
        ++result.foreign;
        continue;
      }
      if (question.open && is_stopped(question.answer.process)) {
        question.answer.trouble = "it does not answer: the process is stopped";
        question.open = false;
      }
      questions.push_back(std::move(question));
    }
  }
  const auto end = SteadyClock::now() + (everybody ? kEverybodyTimeout : kAnswerTimeout);
  for (Query& question : questions) {
    await_report(question, end);
    question.socket = {};
    if (arrived) arrived(question.answer);
    result.answers.push_back(std::move(question.answer));
  }
  std::sort(result.answers.begin(), result.answers.end(),
            [](const EndpointReport& a, const EndpointReport& b) {
              return std::tie(a.process, a.endpoint) < std::tie(b.process, b.endpoint);
            });
  return result;
}

}  // namespace cluster::info
