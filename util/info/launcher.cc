#include "launcher.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

namespace cluster::info {
namespace {

// Cut to 15 characters, as the kernel keeps them.
constexpr std::array<std::string_view, 16> kLaunchers = {
    "mpirun", "mpiexec",    "mpiexec.hydra",   "orterun",         "orted",  "prterun",
    "prte",   "prted",      "hydra_pmi_proxy", "hydra_bstrap_pr", "oshrun", "shmemrun",
    "srun",   "slurmstepd", "flux-shell",      "pbs_mom"};
constexpr int kAncestorsMax = 32;
constexpr unsigned kRetransmissions = 2;  // one may be chance

std::string file_of(int process, const char* name) { return "/proc/" + std::to_string(process) + "/" + name; }

struct Process {
  std::string command;
  int parent = 0;
};

Process look_at(int process) {
  std::ifstream file(file_of(process, "stat"));
  std::string text;
  std::getline(file, text);
  const std::size_t begin = text.find('(');
  const std::size_t end = text.rfind(')');  // the command may contain brackets
  if (begin == std::string::npos || end == std::string::npos) return {};
  Process found{text.substr(begin + 1, end - begin - 1), 0};
  std::istringstream words(text.substr(end + 1));
  std::string state;
  words >> state >> found.parent;
  return found;
}

/// The inodes of the sockets that a process has open.
std::set<std::string> sockets_of(int process) {
  const std::string folder = file_of(process, "fd");
  std::set<std::string> inodes;
  DIR* const entries = ::opendir(folder.c_str());
  while (const dirent* entry = entries != nullptr ? ::readdir(entries) : nullptr) {
    char target[PATH_MAX];
    const ssize_t length = ::readlink((folder + "/" + entry->d_name).c_str(), target, sizeof target);
    const std::string_view name(target, length > 0 ? static_cast<std::size_t>(length) : 0);
    constexpr std::string_view kSocket = "socket:[";
    if (name.starts_with(kSocket))
      inodes.emplace(name.substr(kSocket.size(), name.size() - kSocket.size() - 1));
  }
  if (entries != nullptr) ::closedir(entries);
  return inodes;
}

/// "0100400A:8DFB" is 10.64.0.1:36347: the kernel prints the address as words of this processor.
std::string address_text(const std::string& digits) {
  const std::size_t colon = digits.find(':');
  if (colon == std::string::npos || (colon != 8 && colon != 32)) return digits;
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < colon / 8; ++i)
    words[i] = static_cast<std::uint32_t>(std::strtoul(digits.substr(i * 8, 8).c_str(), nullptr, 16));
  char text[INET6_ADDRSTRLEN] = {};
  const bool six = colon == 32;
  if (::inet_ntop(six ? AF_INET6 : AF_INET, words.data(), text, sizeof text) == nullptr) return digits;
  const std::string port = std::to_string(std::strtoul(digits.substr(colon + 1).c_str(), nullptr, 16));
  return (six ? "[" + std::string(text) + "]" : std::string(text)) + ":" + port;
}

void add_silent(int process, const char* table, const std::set<std::string>& sockets,
                std::vector<SilentConnection>& found) {
  std::ifstream file(file_of(process, table));
  std::string line;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string number, from, to, state, queues, timer, again, user, timeout, inode;
    words >> number >> from >> to >> state >> queues >> timer >> again >> user >> timeout >> inode;
    const auto times = static_cast<unsigned>(std::strtoul(again.c_str(), nullptr, 16));
    if (times >= kRetransmissions && sockets.contains(inode))
      found.push_back({address_text(from), address_text(to), times});
  }
}

}  // namespace

Launcher launcher_of(int process) {
  Launcher launcher;
  int ancestor = look_at(process).parent;
  for (int i = 0; i < kAncestorsMax && ancestor > 0; ++i) {
    const Process found = look_at(ancestor);
    if (std::find(kLaunchers.begin(), kLaunchers.end(), found.command) != kLaunchers.end()) {
      launcher = {ancestor, found.command, {}};
      const std::set<std::string> sockets = sockets_of(ancestor);
      for (const char* table : {"net/tcp", "net/tcp6"}) add_silent(ancestor, table, sockets, launcher.silent);
      break;
    }
    ancestor = found.parent;
  }
  return launcher;
}

}  // namespace cluster::info
