#include "sim/batch.h"

#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <stdexcept>

namespace cluster::sim {
namespace {

/// After so many seconds of processor time a run counts as hung. A run waits for nothing, so on a busy machine
/// real time says little.
constexpr itimerval kRunLimit = {.it_interval = {}, .it_value = {.tv_sec = 300, .tv_usec = 0}};
constexpr double kProgressSeconds = 10;

double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct Child {
  std::uint64_t seed;
  int pipe;
};

class Batch {
 public:
  explicit Batch(const BatchOptions& options)
      : options_(options), began_(seconds_now()), printed_at_(began_) {}

  ExitStatus run() {
    while (more() || !children_.empty()) {
      while (more() && children_.size() < options_.jobs) start(options_.seed(started_++));
      reap();
      print_progress();
    }
    summarise();
    return worst_;
  }

 private:
  bool more() const {
    if (options_.first_failure && failed_ > 0) return false;
    if (options_.histories > 0) return histories_ < options_.histories;
    if (options_.minutes > 0) return seconds_now() - began_ < options_.minutes * 60;
    return started_ < options_.seeds;
  }
  void start(std::uint64_t seed);
  void reap();
  void print_progress();
  void summarise() const;
  void record(const Outcome& outcome);

  const BatchOptions& options_;
  double began_;
  double printed_at_;
  std::map<pid_t, Child> children_;
  std::uint64_t started_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t frames_ = 0;
  std::uint64_t histories_ = 0;
  ExitStatus worst_ = ExitStatus::good;
};

void Batch::start(std::uint64_t seed) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child > 0) {
    close(ends[1]);
    children_[child] = {seed, ends[0]};
    return;
  }
  close(ends[0]);
  setitimer(ITIMER_PROF, &kRunLimit, nullptr);
  RunOptions run = options_.run;
  run.seed = seed;
  const Outcome outcome = run_seed(run, false);
  const bool reported = write(ends[1], &outcome, sizeof outcome) == static_cast<ssize_t>(sizeof outcome);
  _exit(reported ? 0 : static_cast<int>(ExitStatus::crash));
}

void Batch::reap() {
  int status = 0;
  const pid_t pid = waitpid(-1, &status, 0);
  if (pid < 0) {
    if (errno == EINTR) return;
    throw std::runtime_error("a process was lost");
  }
  const auto found = children_.find(pid);
  if (found == children_.end()) return;
  Outcome outcome;
  const bool reported =
      read(found->second.pipe, &outcome, sizeof outcome) == static_cast<ssize_t>(sizeof outcome);
  close(found->second.pipe);
  if (!reported) {
    outcome = {};
    outcome.seed = found->second.seed;
    outcome.status = ExitStatus::crash;
    const bool timed_out = WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF;
    if (timed_out) outcome.status = ExitStatus::liveness;
    std::snprintf(outcome.error_text.data(), outcome.error_text.size(), "%s",
                  timed_out             ? "it never ends"
                  : WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                        : "it ended without a result");
  }
  children_.erase(found);
  record(outcome);
}

void Batch::record(const Outcome& outcome) {
  ++ended_;
  messages_ += outcome.messages;
  frames_ += outcome.frames;
  histories_ += outcome.histories;
  if (outcome.status == ExitStatus::good) return;
  ++failed_;
  print_outcome(outcome, options_.run);
  std::fflush(stdout);
  const auto rank = [](ExitStatus status) {
    return status == ExitStatus::crash      ? 3
           : status == ExitStatus::safety   ? 2
           : status == ExitStatus::liveness ? 1
                                            : 0;
  };
  if (rank(outcome.status) > rank(worst_)) worst_ = outcome.status;
}

void Batch::print_progress() {
  const double now = seconds_now();
  if (options_.quiet || now - printed_at_ < kProgressSeconds) return;
  printed_at_ = now;
  std::fprintf(stderr, "%" PRIu64 " seeds, %" PRIu64 " failed, %.0f s\n", ended_, failed_, now - began_);
}

void Batch::summarise() const {
  std::printf("%" PRIu64 " seeds, %" PRIu64 " failed, %" PRIu64 " messages, %" PRIu64 " frames, %" PRIu64
              " histories, %.0f s\n",
              ended_, failed_, messages_, frames_, histories_, seconds_now() - began_);
}

}  // namespace

ExitStatus run_batch(const BatchOptions& options) { return Batch(options).run(); }

}  // namespace cluster::sim
