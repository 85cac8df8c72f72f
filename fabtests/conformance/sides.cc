#include "sides.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <thread>

namespace conformance {
namespace {

constexpr int kFailed = 1;

[[noreturn]] void fail_process(const std::string& why) {
  std::printf("side gives up: %s\n", why.c_str());
  std::fflush(nullptr);
  _exit(kFailed);
}

/// The network namespace of a side: its turn among two, or four if the setting names so many.
std::string netns_of(int index) {
  const int nodes = setting("CONFORMANCE_NETNS_C", "").empty() ? 2 : 4;
  const std::string name = std::string("CONFORMANCE_NETNS_") + "ABCD"[index % nodes];
  return setting(name.c_str(), "");
}

/// Puts this process on the node of its side and sets the environment of that node.
void enter_side_environment(int index) {
  const std::string node = index % 2 == 0 ? "_A" : "_B";
  const std::string name = netns_of(index);
  if (!name.empty()) {
    const std::string path = name.front() == '/' ? name : "/run/netns/" + name;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) fail_process("cannot enter network namespace " + name);
    close(fd);
  }
  std::istringstream words(setting(("CONFORMANCE_ENV" + node).c_str(), ""));
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) fail_process("'" + word + "' is no NAME=value");
    setenv(word.substr(0, equals).c_str(), word.substr(equals + 1).c_str(), 1);
  }
  setenv("FI_PROVIDER", provider_under_test().c_str(), 0);
}

[[noreturn]] void run_side_process(int index, std::vector<int> lines, const Body& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  enter_side_environment(index);
  {
    Side side(index, std::move(lines));
    body(side);
  }
  const bool failed = testing::Test::HasFailure();
  std::fflush(nullptr);
  // exit(), not _exit(): the provider must survive the end of a process, too.
  std::exit(failed ? kFailed : 0);
}

/// Waits for one process; kills it, and says so, if it does not end before the deadline.
int await_end(pid_t pid, std::chrono::steady_clock::time_point deadline) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd event{fd, POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (fd >= 0 && poll(&event, 1, static_cast<int>(std::max<long long>(left.count(), 0))) == 0) {
    ADD_FAILURE() << "process " << pid << " did not end in time and was killed";
    kill(pid, SIGKILL);
  }
  if (fd >= 0) close(fd);
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

/// lines[i][j] is the descriptor that side i uses to talk to side j.
std::vector<std::vector<int>> make_lines(int count) {
  std::vector<std::vector<int>> lines(static_cast<std::size_t>(count),
                                      std::vector<int>(static_cast<std::size_t>(count), -1));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::size_t j = i + 1; j < lines.size(); ++j) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) fail_process("no socket pair");
      lines[i][j] = pair[0];
      lines[j][i] = pair[1];
    }
  }
  return lines;
}

void close_all(const std::vector<std::vector<int>>& lines, std::size_t except) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i == except) continue;
    for (const int fd : lines[i]) {
      if (fd >= 0) close(fd);
    }
  }
}

}  // namespace

bool Deadline::passed() const {
  constexpr Clock::duration kSilenceStepMax = std::chrono::milliseconds(100);
  const auto now = Clock::now();
  left_ -= std::min(now - last_check_, kSilenceStepMax);
  last_check_ = now;
  return left_ <= Clock::duration::zero();
}

void yield_processor() {
  static thread_local unsigned times = 0;
  if (++times % 64 == 0) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(1));
  } else {
    std::this_thread::yield();
  }
}

std::string setting(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

std::chrono::seconds longest_test() {
  return std::chrono::seconds(std::stoi(setting("CONFORMANCE_SECONDS", "120")));
}

std::string provider_under_test() { return setting("CONFORMANCE_PROVIDER", "cluster"); }

bool memory_in_reach() {
  return setting("CONFORMANCE_NETNS_A", "") == setting("CONFORMANCE_NETNS_B", "") &&
         setting("CONFORMANCE_ENV_A", "").find("FI_CLUSTER_SHM=no") == std::string::npos;
}

bool between_nodes() { return !setting("CONFORMANCE_NETNS_A", "").empty(); }

void Side::send_blob(int other, const Blob& blob) {
  const auto sent = send(sockets_[static_cast<std::size_t>(other)], blob.data(), blob.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(blob.size())) {
    if (!testing::Test::HasFailure()) ADD_FAILURE() << "side " << other << " is gone";
    fail_process("a side is gone");
  }
}

Blob Side::receive_blob(int other, const std::function<void()>& meanwhile) {
  const int line = sockets_[static_cast<std::size_t>(other)];
  Blob blob(65536);
  for (;;) {
    pollfd event{line, POLLIN, 0};
    if (poll(&event, 1, meanwhile ? 0 : 1000) > 0) break;
    if (meanwhile) {
      meanwhile();
      yield_processor();
    }
  }
  const auto size = recv(line, blob.data(), blob.size(), 0);
  if (size <= 0) fail_process("side " + std::to_string(other) + " left early");
  blob.resize(static_cast<std::size_t>(size));
  return blob;
}

std::vector<Blob> Side::exchange(const Blob& mine, const std::function<void()>& meanwhile) {
  std::vector<Blob> all(sockets_.size(), mine);
  for (int other = 0; other < count(); ++other) {
    if (other != index_) send_blob(other, mine);
  }
  for (int other = 0; other < count(); ++other) {
    if (other != index_) all[static_cast<std::size_t>(other)] = receive_blob(other, meanwhile);
  }
  return all;
}

void run_sides(int count, const Body& body) {
  const auto lines = make_lines(count);
  const auto deadline = std::chrono::steady_clock::now() + longest_test();
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int index = 0; index < count; ++index) {
    const pid_t pid = fork();
    if (pid == 0) {
      const auto mine = static_cast<std::size_t>(index);
      close_all(lines, mine);
      run_side_process(index, lines[mine], body);
    }
    ASSERT_GT(pid, 0);
    children.push_back(pid);
  }
  close_all(lines, lines.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    const int status = await_end(children[i], deadline);
    if (WIFSIGNALED(status)) ADD_FAILURE() << "side " << i << " died of signal " << WTERMSIG(status);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    EXPECT_EQ(code, 0) << "side " << i << " failed";
  }
}

}  // namespace conformance
